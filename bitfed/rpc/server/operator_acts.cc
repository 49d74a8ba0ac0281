#include "bitfed/rpc/server/operator_acts.h"

#include <charconv>
#include <sstream>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

double parse_number(const std::string& key, const std::string& text, double min, double max) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || last != end || !(value >= min && value <= max))
    throw input_error("{}: found '{}', expected a number from {} to {}", key, text, min, max);
  return value;
}

uint32_t parse_count(const std::string& key, const std::string& text) {
  uint32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || last != end) throw input_error("{}: found '{}', expected a number", key, text);
  return value;
}

}  // namespace

std::string OperatorActs::answer(const std::string& line, const Asker& asker) {
  const size_t space = std::min(line.find(' '), line.size());
  const std::string act = line.substr(0, space);
  const std::string argument = line.substr(std::min(space + 1, line.size()));
  if (act == "status") return status_();
  const std::lock_guard lock(mutex_);
  audit_.append({.user = asker.user, .name = asker.name, .act = line});
  try {
    std::string text = perform(act, argument, asker);
    audit_.append({.user = asker.user, .name = asker.name, .done = line});
    return text;
  } catch (const Error& error) {
    audit_.append({.user = asker.user, .name = asker.name, .failed = line, .text = error.what()});
    throw;
  }
}

std::string OperatorActs::perform(const std::string& act, const std::string& argument, const Asker& asker) {
  if (act == "pause") {
    coordinator_.pause(true);
    return "paused: no round begins until `resume`\n";
  }
  if (act == "resume") {
    coordinator_.pause(false);
    return "resumed\n";
  }
  if (act == "drop") {
    coordinator_.drop(argument);
    return fmt::format("client '{}' left the round; it may come back for another\n", argument);
  }
  if (act == "free") {
    coordinator_.free_part(parse_count("part", argument));
    return fmt::format("part {} is free\n", argument);
  }
  if (act == "policy") return change_policy(argument);
  if (act == "backup") {
    if (!asker.user)
      throw input_error("backup: found a request over the network, expected one on the server");
    store_.back_up(argument);
    return argument + "\n";
  }
  if (act == "end") {
    coordinator_.end_after_round();
    return "the server ends after the round under way\n";
  }
  throw input_error(
      "found '{}', expected status, pause, resume, drop NAME, free PART, policy KEY=VALUE, backup FILE or "
      "end",
      act);
}

std::string OperatorActs::change_policy(const std::string& settings) {
  RoundPolicy policy = coordinator_.policy();
  std::istringstream words(settings);
  std::string word;
  while (words >> word) {
    const size_t equals = std::min(word.find('='), word.size());
    const std::string key = word.substr(0, equals);
    const std::string value = word.substr(std::min(equals + 1, word.size()));
    if (key == "minimum_clients") {
      policy.minimum_clients = std::max(parse_count(key, value), 1u);
    } else if (key == "quorum") {
      policy.quorum = parse_number(key, value, 1e-9, 1);
    } else if (key == "deadline_seconds") {
      policy.deadline_seconds = parse_number(key, value, 0, 1e9);
    } else if (key == "min_answers" || key == "least_answers") {
      policy.min_answers = std::max(parse_count(key, value), 1u);
    } else {
      throw input_error("found '{}', expected minimum_clients, quorum, deadline_seconds or min_answers", key);
    }
  }
  if (!settings.empty()) coordinator_.set_policy(policy);
  return fmt::format("minimum_clients={} quorum={} deadline_seconds={} min_answers={}\n",
                     policy.minimum_clients, policy.quorum, policy.deadline_seconds, policy.min_answers);
}

}  // namespace bitfed
