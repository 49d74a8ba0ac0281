#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bitfed {

// What passes between an averaging method and the sum over clients. A server half that takes means sees no
// client's update by itself, however the sum was made: in the clear, from masked updates, or with noise.

enum class SumKind {
  kChange,   // of a learned parameter: rounded to the recipe's grid, within its range
  kVote,     // +1 or -1
  kPrecise,  // of a scale that the recipe does not know (statistics, ranges of columns): fine and wide
};

struct SumPart {
  SumKind kind = SumKind::kChange;
  size_t count = 0;

  bool operator==(const SumPart&) const = default;
};
using SumParts = std::vector<SumPart>;

// What one client adds.
struct ClientUpdate {
  SumParts parts;
  std::vector<double> values;  // of all parts
  uint32_t weight = 1;         // the client's samples
};

// What a server half receives of a round.
struct UpdateMean {
  std::vector<double> values;  // the weighted mean of the clients' values
  uint64_t weight = 0;         // the sum of theirs
  size_t clients = 0;
};

}  // namespace bitfed
