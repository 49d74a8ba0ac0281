#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace bitfed {

// The weighted mean of vectors of floats, one vector at a time in any order and in memory for one: the sums
// are of integers, so that the order of arrival cannot change a bit. Values are taken as multiples of 2^-64
// (a float of 2^-41 or more is one) and must lie within ±2^22; weights must not sum up to more than 2^40. The
// mean of a single vector is that vector.
class ExactMean {
 public:
  static constexpr float kLargest = 4194304;

  // The first vector sets the size; for the values see fits(). An input_error where the weights become too
  // many, as they would if clients lied about their samples.
  void add(std::span<const float> values, uint32_t weight);
  static bool fits(std::span<const float> values);  // finite, and within the range

  bool empty() const { return weight_ == 0; }
  uint64_t weight() const { return weight_; }
  std::vector<float> mean() const;

 private:
  __extension__ typedef __int128 Sum;
  std::vector<Sum> sums_;
  uint64_t weight_ = 0;
};

}  // namespace bitfed
