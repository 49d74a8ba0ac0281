#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "bitfed/base/hash/random.h"

namespace bitfed {

// FedMUD's update of a layer's n weights from few numbers (block-wise Kronecker decomposition,
// aggregation-aware): `blocks` matrices of z^2 x z^2, row by row and one after the other, cut off at n, each
//   fixed_left (x) right + left (x) fixed_right
// of matrices z x z. The fixed ones are drawn; left and right are learned from zeros on, so that the mean of
// the updates of several clients is the update of their means.
class KroneckerUpdate {
 public:
  // At most `ratio` of n numbers are learned, but for rounding up: blocks = ceil(ratio^2 n / 4), z =
  // ceil((n / blocks)^(1/4)).
  KroneckerUpdate(size_t count, double ratio, RandomStream random);

  size_t blocks() const { return blocks_; }
  size_t size() const { return size_; }  // z
  // left of all blocks, then right.
  std::vector<float>& factors() { return factors_; }
  const std::vector<float>& factors() const { return factors_; }

  // The n numbers.
  void values(std::vector<float>* update) const;
  // One step along their gradient.
  void descend(std::span<const float> gradient, float rate);

 private:
  size_t count_;
  size_t blocks_;
  size_t size_;
  std::vector<float> fixed_left_, fixed_right_;
  std::vector<float> factors_;
  std::vector<float> steps_;  // the factors' gradient
};

}  // namespace bitfed
