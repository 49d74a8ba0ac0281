#include "bitfed/report/pages/personal_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace bitfed {
namespace {

constexpr size_t kChosen = 4;

// The clients of which `key` knows something, the largest first, then by number.
template <typename Key>
std::vector<ClientAccuracy> sorted_by(const std::vector<ClientAccuracy>& results, Key key) {
  std::vector<ClientAccuracy> sorted;
  std::copy_if(results.begin(), results.end(), std::back_inserter(sorted),
               [&](const ClientAccuracy& outcome) { return key(outcome).has_value(); });
  std::sort(sorted.begin(), sorted.end(), [&](const ClientAccuracy& a, const ClientAccuracy& b) {
    return key(a) != key(b) ? key(a) > key(b) : a.client < b.client;
  });
  return sorted;
}

}  // namespace

std::string client_label(const ClientAccuracy& outcome) {
  if (!outcome.name) return fmt::format("client {}", outcome.client);
  const bool is_number = outcome.name->find_first_not_of("0123456789") == std::string::npos;
  return is_number ? "person " + *outcome.name : *outcome.name;
}

std::string counted_clients(const RunSummary& summary) {
  const std::vector<ClientAccuracy>& results = summary.client_results;
  if (results.empty()) return "its clients";
  const auto count = std::count_if(results.begin(), results.end(),
                                   [](const ClientAccuracy& o) { return o.local_accuracy.has_value(); });
  const bool are_people = results.front().name.has_value();
  if (count == 1) return are_people ? "1 person" : "1 client";
  return fmt::format("{} {}", count, are_people ? "people" : "clients");
}

std::vector<std::string> people_of(const RunSummary& summary) {
  if (summary.client_results.size() != summary.client_class_counts.size()) return {};
  std::vector<std::string> names;
  for (const ClientAccuracy& outcome : summary.client_results) {
    if (!outcome.name || outcome.client != names.size()) return {};
    names.push_back(*outcome.name);
  }
  return names;
}

std::optional<double> gain_of(const ClientAccuracy& outcome) {
  if (!outcome.local_accuracy || !outcome.global_accuracy) return std::nullopt;
  return *outcome.local_accuracy - *outcome.global_accuracy;
}

std::vector<ClientAccuracy> by_gain(const std::vector<ClientAccuracy>& results) {
  return sorted_by(results, gain_of);
}

std::vector<ClientAccuracy> chosen_clients(const std::vector<ClientAccuracy>& results) {
  const std::vector<ClientAccuracy> sorted =
      sorted_by(results, [](const ClientAccuracy& outcome) { return outcome.local_accuracy; });
  if (sorted.size() <= kChosen) return sorted;
  std::vector<ClientAccuracy> chosen;
  for (size_t i = 0; i < kChosen; ++i) {
    // The nearest rank: half of the divisor rounds.
    chosen.push_back(sorted[(2 * i * (sorted.size() - 1) + kChosen - 1) / (2 * (kChosen - 1))]);
  }
  return chosen;
}

}  // namespace bitfed
