#pragma once

#include "bitfed/nn/layers/layer.h"

namespace bitfed {

// What a batch norm learns and gathers. Momentum 0.1 and epsilon 1e-5, and an unbiased running variance, as
// PyTorch has them.
struct NormParameters {
  NormParameters(size_t channels, const std::string& name);

  std::vector<Parameter*> all() { return {&scale, &shift, &mean, &variance}; }
  void start();
  // The mean and the biased variance of a batch with `rows` values a channel. A single value has no variance:
  // it leaves the running statistics as they are.
  void gather(const Floats& batch_mean, const Floats& batch_variance, size_t rows);
  // Batch norm as x * factor + offset, by the running statistics.
  void fold(Floats* factor, Floats* offset) const;

  static constexpr float kEpsilon = 1e-5f;
  static constexpr float kMomentum = 0.1f;

  Parameter scale, shift;
  Parameter mean, variance;  // statistics
};

}  // namespace bitfed
