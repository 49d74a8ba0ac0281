#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace bitfed {

// The weighted mean of vectors of floats, one vector at a time in any order and in memory for one: the sums
// are of integers, so that the order of arrival cannot change a bit. Values are taken as multiples of 2^-40
// and must lie within ±2^22: what a network's parameters are, to a precision that a float near them has not.
class ExactMean {
 public:
  static constexpr float kLargest = 4194304;

  // Checks nothing but the size, which the first vector sets; see fits().
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
