#include "cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "bitfed/base/error.h"
#include "bitfed/base/names.h"

namespace bitfed::cli {
namespace {

constexpr size_t kHelpColumn = 30;  // where descriptions begin

template <typename T>
void read_number(const std::string& text, T* value, std::string_view expected) {
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const char* end = text.data() + text.size();
  const auto [after, code] = std::from_chars(begin, end, *value);
  if (code != std::errc() || after != end) throw input_error("found '{}', expected {}", text, expected);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Two columns; descriptions may have several lines.
std::string help_line(const std::string& left, const std::string& description) {
  std::string text = "  " + left;
  if (text.size() >= kHelpColumn) text += '\n';
  bool is_first = text.size() < kHelpColumn;
  for (const std::string& line : split(description, '\n')) {
    const size_t indent = is_first ? kHelpColumn - text.size() : kHelpColumn;
    text += std::string(indent, ' ') + line + '\n';
    is_first = false;
  }
  return text;
}

bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && !(word[1] >= '0' && word[1] <= '9') && word[1] != '.';
}

}  // namespace

void read_value(const std::string& text, std::string* value) {
  *value = text;
}
void read_value(const std::string& text, std::filesystem::path* value) {
  *value = text;
}
void read_value(const std::string& text, int* value) {
  read_number(text, value, "a whole number");
}
void read_value(const std::string& text, unsigned* value) {
  read_number(text, value, "a whole number from 0");
}
void read_value(const std::string& text, int64_t* value) {
  read_number(text, value, "a whole number");
}
void read_value(const std::string& text, uint64_t* value) {
  read_number(text, value, "a whole number from 0");
}
void read_value(const std::string& text, double* value) {
  read_number(text, value, "a number");
  if (!std::isfinite(*value)) throw input_error("found '{}', expected a number", text);
}

Option::Option(const std::string& names, std::string description, Takes takes, Read read, std::string initial)
    : names_(split(names, ',')),
      description_(std::move(description)),
      takes_(takes),
      read_(std::move(read)),
      initial_(std::move(initial)) {}

Option* Option::required() {
  is_required_ = true;
  return this;
}

Option* Option::type_name(std::string name) {
  type_ = std::move(name);
  return this;
}

Option* Option::between(double min, double max) {
  min_ = min;
  max_ = max;
  return this;
}

Option* Option::at_least(double min) {
  min_ = min;
  return this;
}

Option* Option::one_of(std::vector<std::string> words) {
  words_ = std::move(words);
  return this;
}

Option* Option::show_default() {
  shows_initial_ = true;
  return this;
}

Option* Option::excludes(const Option* other) {
  excluded_.push_back(other);
  return this;
}

Option* Option::one_at_a_time() {
  is_greedy_ = false;
  return this;
}

Option* Option::separated_by(char separator) {
  separator_ = separator;
  return this;
}

std::string Option::type() const {
  return words_.empty() ? type_ : joined(words_, "|");
}

// "RECIPE", "--out DIR", "--threads N=4", "--rows GLOB...".
std::string Option::usage() const {
  const std::string several = takes_ == Takes::kSeveral && separator_ == '\0' ? "..." : "";
  std::string text = joined(names_);
  if (!is_positional() && takes_ != Takes::kNothing) text += " " + type();
  return text + (shows_initial_ ? "=" + initial_ : "") + several;
}

void Option::give(const std::string& text) {
  for (const std::string& part : separator_ != '\0' ? split(text, separator_) : std::vector{text}) {
    if (!words_.empty() && std::find(words_.begin(), words_.end(), part) == words_.end())
      throw input_error("found '{}', expected one of: {}", part, joined(words_));
    if (min_) {
      double number = 0;
      read_value(part, &number);
      if (number < *min_ || number > max_.value_or(number)) {
        throw input_error("found {}, expected a number {}", part,
                          max_ ? fmt::format("from {} to {}", *min_, *max_) : fmt::format("from {}", *min_));
      }
    }
    read_(part, given_++ == 0);
  }
}

Command::Command(std::string name, std::string description)
    : name_(std::move(name)), description_(std::move(description)) {}

Command* Command::add_subcommand(const std::string& name, const std::string& description) {
  return subcommands_.emplace_back(std::make_unique<Command>(name_ + " " + name, description)).get();
}

Option* Command::add(Option option) {
  return options_.emplace_back(std::make_unique<Option>(std::move(option))).get();
}

Option* Command::add_flag(const std::string& name, bool& value, const std::string& description) {
  return add({name, description, Option::Takes::kNothing,
              [&value](const std::string& /*text*/, bool /*is_first*/) { value = true; }});
}

Error Command::wrong(const std::string& what) const {
  return input_error("{}; see {} --help", what, name_);
}

Option* Command::find(std::string_view name) const {
  for (const auto& option : options_) {
    const auto& names = option->names_;
    if (!option->is_positional() && std::find(names.begin(), names.end(), name) != names.end())
      return option.get();
  }
  return nullptr;
}

void Command::run(int argc, const char* const* argv) {
  parse(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
}

void Command::parse(std::vector<std::string> words) {
  bool only_arguments = false;
  for (size_t at = 0; at < words.size() && !accepts_anything_; ++at) {
    const std::string& word = words[at];
    if (!only_arguments && (word == "--help" || word == "-h")) {
      fmt::print("{}", help());
      return;
    }
    if (!only_arguments && word == "--version" && !version_.empty()) {
      fmt::print("{}\n", version_);
      return;
    }
    if (!only_arguments && word == "--") {
      only_arguments = true;
    } else if (!only_arguments && is_option(word)) {
      parse_option(word, words, &at);
    } else if (!subcommands_.empty()) {
      const auto named = [&](const auto& command) { return command->name_ == name_ + " " + word; };
      const auto found = std::find_if(subcommands_.begin(), subcommands_.end(), named);
      if (found == subcommands_.end()) {
        std::vector<std::string> known;
        for (const auto& command : subcommands_) known.push_back(command->name_.substr(name_.size() + 1));
        throw wrong(fmt::format("{}: unknown command{}", word, suggestion(word, known)));
      }
      check();
      (*found)->parse({words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end()});
      return;
    } else {
      parse_argument(word);
    }
  }
  if (!subcommands_.empty()) throw wrong("found no command");
  check();
  if (callback_) callback_();
}

// `at` is the index of `word`, and moves over the values.
void Command::parse_option(const std::string& word, const std::vector<std::string>& words, size_t* at) {
  const size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  Option* option = find(name);
  if (option == nullptr) {
    std::vector<std::string> known = {"--help"};
    for (const auto& other : options_) {
      if (!other->is_positional()) known.push_back(other->name());
    }
    const std::string near = nearest_name(name, known);
    throw wrong(fmt::format("{}: unknown option{}", name,
                            near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near)));
  }
  const auto next_is_value = [&] { return *at + 1 < words.size() && !is_option(words[*at + 1]); };
  if (option->takes_ == Option::Takes::kNothing) {
    if (equals != std::string::npos) throw wrong(fmt::format("{}: found a value, expected none", name));
    give(option, name, "");
  } else if (equals != std::string::npos) {
    give(option, name, word.substr(equals + 1));
  } else if (!next_is_value()) {
    throw wrong(fmt::format("{}: found no value, expected {}", name, option->type()));
  } else {
    do {
      give(option, name, words[++*at]);
    } while (option->takes_ == Option::Takes::kSeveral && option->is_greedy_ && option->separator_ == '\0' &&
             next_is_value());
  }
}

void Command::parse_argument(const std::string& word) {
  for (const auto& option : options_) {
    if (!option->is_positional() || (option->given_ > 0 && option->takes_ != Option::Takes::kSeveral))
      continue;
    give(option.get(), option->name(), word);
    return;
  }
  throw wrong(fmt::format("found '{}', expected no further argument", word));
}

void Command::give(Option* option, const std::string& name, const std::string& text) const {
  try {
    option->give(text);
  } catch (const Error& error) {
    throw wrong(fmt::format("{}: {}", name, error.what()));
  }
}

void Command::check() const {
  for (const auto& option : options_) {
    if (option->is_required_ && option->given_ == 0) throw wrong(fmt::format("{}: missing", option->name()));
    for (const Option* other : option->excluded_) {
      if (option->given_ > 0 && other->given_ > 0)
        throw wrong(
            fmt::format("{}: found beside {}, expected one of the two", option->name(), other->name()));
    }
  }
}

std::string Command::help() const {
  std::string arguments;
  std::string described;
  std::string options = help_line("-h, --help", "Print this help");
  if (!version_.empty()) options += help_line("--version", "Print the version");
  for (const auto& option : options_) {
    const std::string usage = option->usage();
    if (option->is_positional()) {
      arguments += option->is_required_ ? " " + usage : " [" + usage + "]";
      described += help_line(usage, option->description_);
    } else {
      options += help_line(usage, option->description_ + (option->is_required_ ? " (required)" : ""));
    }
  }
  std::string text = fmt::format("{}\nUsage: {}{} [OPTIONS]{}\n", description_, name_,
                                 subcommands_.empty() ? "" : " COMMAND", arguments);
  if (!described.empty()) text += "\nArguments:\n" + described;
  text += "\nOptions:\n" + options;
  if (!subcommands_.empty()) text += "\nCommands:\n";
  for (const auto& command : subcommands_)
    text += help_line(command->name_.substr(name_.size() + 1), command->description_);
  return footer_.empty() ? text : text + "\n" + footer_ + "\n";
}

}  // namespace bitfed::cli
