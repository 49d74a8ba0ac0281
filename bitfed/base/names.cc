#include "bitfed/base/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace bitfed {
namespace {

// Levenshtein's distance, one row at a time.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string> known) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, name.size() / 2);
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
  return fmt::format(" (known: {})", fmt::join(known, ", "));
}

}  // namespace bitfed
