#pragma once

#include <cstdint>
#include <vector>

#include "bitfed/nn/norm/folded_norm.h"

namespace bitfed {

// A unit's sum goes through batch norm and hardtanh, and the result is compared with a mean: that is one
// comparison of the sum with a threshold, because every rounding in between is monotone. The absolute value
// of a factor counts: where one is negative, the unit's weights are to be negated, which negates its sum
// exactly. A max pool between sum and sign changes nothing, since the largest sum stays the largest.

// The smallest integer sums from -max to max that reach the mean; max + 1 where none does.
std::vector<int32_t> whole_thresholds(const FoldedNorm& norm, float mean, int32_t max);

// The smallest floats that reach the mean; the largest float where none does: no sum of inputs is as large.
std::vector<float> real_thresholds(const FoldedNorm& norm, float mean);

}  // namespace bitfed
