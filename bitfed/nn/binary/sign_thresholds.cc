#include "bitfed/nn/binary/sign_thresholds.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

namespace bitfed {
namespace {

// Maps floats to integers of the same order, and back.
int64_t rank_of(float value) {
  int32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits >= 0 ? bits : int64_t{INT32_MIN} - bits;
}

float float_of(int64_t rank) {
  const auto bits = static_cast<int32_t>(rank >= 0 ? rank : int64_t{INT32_MIN} - rank);
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// As the layers compute it, with two roundings.
bool reaches(float sum, float factor, float offset, float mean) {
  const float product = sum * std::fabs(factor);
  const float x = product + offset;
  return std::clamp(x, -1.0f, 1.0f) >= mean;
}

// The smallest value from `min` on for which `holds`; `end` if there is none below it. It holds for all
// above.
template <typename Holds>
int64_t first_that(int64_t min, int64_t end, Holds holds) {
  int64_t off = min - 1;
  int64_t on = end;
  while (on - off > 1) {
    const int64_t middle = off + (on - off) / 2;
    (holds(middle) ? on : off) = middle;
  }
  return on;
}

}  // namespace

std::vector<int32_t> whole_thresholds(const FoldedNorm& norm, float mean, int32_t max) {
  std::vector<int32_t> thresholds;
  for (size_t i = 0; i < norm.factor.size(); ++i) {
    const auto on = [&](int64_t sum) {
      return reaches(static_cast<float>(sum), norm.factor[i], norm.offset[i], mean);
    };
    thresholds.push_back(static_cast<int32_t>(first_that(-int64_t{max}, int64_t{max} + 1, on)));
  }
  return thresholds;
}

std::vector<float> real_thresholds(const FoldedNorm& norm, float mean) {
  std::vector<float> thresholds;
  for (size_t i = 0; i < norm.factor.size(); ++i) {
    const auto on = [&](int64_t rank) {
      return reaches(float_of(rank), norm.factor[i], norm.offset[i], mean);
    };
    thresholds.push_back(float_of(first_that(rank_of(-FLT_MAX), rank_of(FLT_MAX), on)));
  }
  return thresholds;
}

}  // namespace bitfed
