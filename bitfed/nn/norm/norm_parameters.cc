#include "bitfed/nn/norm/norm_parameters.h"

#include <algorithm>

#include "bitfed/nn/norm/folded_norm.h"

namespace bitfed {

NormParameters::NormParameters(size_t channels, const std::string& name)
    : scale(name + ".scale", 1, channels),
      shift(name + ".shift", 1, channels),
      mean(name + ".mean", 1, channels, true),
      variance(name + ".variance", 1, channels, true) {}

void NormParameters::initialise() {
  std::fill_n(scale.values.row(0), scale.count(), 1.0f);
  std::fill_n(variance.values.row(0), variance.count(), 1.0f);
  shift.values.values.clear();
  mean.values.values.clear();
}

void NormParameters::accumulate(const Floats& batch_mean, const Floats& batch_variance, size_t rows) {
  if (rows < 2) return;
  const float unbiased = static_cast<float>(rows) / static_cast<float>(rows - 1);
  for (size_t c = 0; c < mean.count(); ++c) {
    float& running_mean = mean.values.row(0)[c];
    float& running_variance = variance.values.row(0)[c];
    running_mean = (1 - kMomentum) * running_mean + kMomentum * batch_mean[c];
    running_variance = (1 - kMomentum) * running_variance + kMomentum * (unbiased * batch_variance[c]);
  }
}

void NormParameters::fold(Floats* factor, Floats* offset) const {
  const auto values = [](const Parameter& parameter) {
    return std::span<const float>(parameter.values.row(0), parameter.count());
  };
  fold_norm(values(scale), values(shift), values(mean), values(variance), factor->data(), offset->data());
}

}  // namespace bitfed
