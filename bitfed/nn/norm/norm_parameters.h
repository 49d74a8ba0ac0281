#pragma once

#include "bitfed/nn/layers/layer.h"

namespace bitfed {

// The parameters and running statistics of a batch norm. Momentum 0.1, epsilon 1e-5 and an unbiased running
// variance, as in PyTorch.
struct NormParameters {
  NormParameters(size_t channels, const std::string& name);

  std::vector<Parameter*> all() { return {&scale, &shift, &mean, &variance}; }
  void initialise();
  // Updates the running statistics by a batch with `rows` values per channel; `batch_variance` is the biased
  // one. A single value has no variance, and leaves the statistics as they are.
  void accumulate(const Floats& batch_mean, const Floats& batch_variance, size_t rows);
  // Batch norm by the running statistics, as x * factor + offset.
  void fold(Floats* factor, Floats* offset) const;

  static constexpr float kEpsilon = 1e-5f;
  static constexpr float kMomentum = 0.1f;

  Parameter scale, shift;
  Parameter mean, variance;  // statistics
};

}  // namespace bitfed
