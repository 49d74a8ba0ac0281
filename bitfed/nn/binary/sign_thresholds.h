#pragma once

#include <cstdint>
#include <vector>

#include "bitfed/nn/layers/folded_norm.h"

namespace bitfed {

// Where a unit's sum goes through batch norm and hardtanh, and what comes out is compared with a mean, all of
// it is one comparison of the sum with a threshold: each rounding on the way is monotone. Factors count
// without their sign: where one is negative, the unit's weights are to be turned about, which negates its
// sum exactly. Pools between sum and sign change nothing, since the largest sum stays the largest.

// The least whole sums from -most to most that reach the mean; most + 1 where none does.
std::vector<int32_t> whole_thresholds(const FoldedNorm& norm, float mean, int32_t most);

// The least floats that do; where none does, the largest float, which no sum of inputs comes to.
std::vector<float> real_thresholds(const FoldedNorm& norm, float mean);

}  // namespace bitfed
