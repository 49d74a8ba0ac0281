#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "bitfed/base/hash/random.h"

namespace bitfed {

// FedMUD's update of a layer's n weights from few parameters (block-wise Kronecker decomposition,
// aggregation-aware): `blocks` contiguous matrices of z^2 x z^2, row-major, truncated at n values, each
//   fixed_left (x) right + left (x) fixed_right
// with matrices of z x z. The fixed factors are random; left and right are learned, initialised to zero. The
// update is linear in them, so that the mean of several clients' updates is the update of their mean factors.
class KroneckerUpdate {
 public:
  // Up to rounding, at most ratio * n parameters are learned:
  // blocks = ceil(ratio^2 n / 4), z = ceil((n / blocks)^(1/4)).
  KroneckerUpdate(size_t count, double ratio, RandomStream random);

  size_t blocks() const { return blocks_; }
  size_t size() const { return size_; }  // z
  // left of all blocks, then right.
  std::vector<float>& factors() { return factors_; }
  const std::vector<float>& factors() const { return factors_; }

  // The n values.
  void values(std::vector<float>* update) const;
  // One step of gradient descent, given the gradient of the values.
  void descend(std::span<const float> gradient, float rate);

 private:
  size_t count_;
  size_t blocks_;
  size_t size_;
  std::vector<float> fixed_left_, fixed_right_;
  std::vector<float> factors_;
  std::vector<float> steps_;  // the gradient of the factors
};

}  // namespace bitfed
