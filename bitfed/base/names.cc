#include "bitfed/base/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace bitfed {
namespace {

// Insertions, deletions, replacements and swaps of neighbours that lead from one to the other (optimal
// string alignment), one row at a time.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  std::vector<size_t> above;
  std::vector<size_t> two_above;
  for (size_t i = 1; i <= a.size(); ++i) {
    two_above = std::exchange(above, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = above[j - 1] + (a[i - 1] != b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string> known) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, name.size() / 2);  // farther names are no help
  for (const std::string& candidate : known) {
    const bool contained = name.size() >= 3 && candidate.find(name) != std::string::npos;
    const size_t distance = contained ? 1 : edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string suggestion(std::string_view name, std::span<const std::string> known) {
  if (const std::string near = nearest_name(name, known); !near.empty()) {
    return fmt::format(" (did you mean '{}'?)", near);
  }
  return known.empty() ? "" : fmt::format(" (known: {})", joined(known));
}

std::string joined(std::span<const std::string> names, std::string_view separator) {
  std::string all;
  for (const std::string& name : names) {
    if (&name != names.data()) all += separator;
    all += name;
  }
  return all;
}

}  // namespace bitfed
