#include "bitfed/federated/arithmetic/kronecker_update.h"

#include <cassert>
#include <cmath>

namespace bitfed {
namespace {

constexpr double kFixedLimit = 5;  // the fixed factors are uniform within ± this

std::vector<float> fixed_factors(size_t count, RandomStream random) {
  std::vector<float> factors(count);
  for (float& factor : factors) factor = static_cast<float>(kFixedLimit * (2 * random.uniform() - 1));
  return factors;
}

// body(index in the update, index in the left factors, index in the right factors), in the order of the
// update.
template <typename Body>
void for_each_value(size_t count, size_t size, Body body) {
  const size_t square = size * size;
  size_t i = 0;
  for (size_t block = 0; i < count; block += square) {
    for (size_t row = 0; row < square; ++row) {
      const size_t left = block + row / size * size;
      const size_t right = block + row % size * size;
      for (size_t l = left; l < left + size; ++l) {
        for (size_t r = right; r < right + size; ++r, ++i) {
          if (i == count) return;
          body(i, l, r);
        }
      }
    }
  }
}

}  // namespace

KroneckerUpdate::KroneckerUpdate(size_t count, double ratio, RandomStream random)
    : count_(count),
      blocks_(static_cast<size_t>(std::ceil(ratio * ratio * static_cast<double>(count) / 4))),
      size_(static_cast<size_t>(
          std::ceil(std::pow(static_cast<double>(count) / static_cast<double>(blocks_), 0.25) - 1e-9))) {
  assert(count > 0 && ratio > 0 && ratio <= 1);
  const size_t factors = blocks_ * size_ * size_;
  fixed_left_ = fixed_factors(factors, random.substream(0));
  fixed_right_ = fixed_factors(factors, random.substream(1));
  factors_.assign(2 * factors, 0);
}

void KroneckerUpdate::values(std::vector<float>* update) const {
  update->resize(count_);
  const float* left = factors_.data();
  const float* right = left + fixed_left_.size();
  for_each_value(count_, size_, [&](size_t i, size_t l, size_t r) {
    (*update)[i] = fixed_left_[l] * right[r] + left[l] * fixed_right_[r];
  });
}

void KroneckerUpdate::descend(std::span<const float> gradient, float rate) {
  assert(gradient.size() == count_);
  steps_.assign(factors_.size(), 0);
  float* left = steps_.data();
  float* right = left + fixed_left_.size();
  for_each_value(count_, size_, [&](size_t i, size_t l, size_t r) {
    left[l] += gradient[i] * fixed_right_[r];
    right[r] += gradient[i] * fixed_left_[l];
  });
  for (size_t i = 0; i < factors_.size(); ++i) factors_[i] -= rate * steps_[i];
}

}  // namespace bitfed
