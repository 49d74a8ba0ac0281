#include "bitfed/nn/batch_norm.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace bitfed {
namespace {

constexpr float kMomentum = 0.1f;

Parameter per_channel(const std::string& name, size_t channels, bool statistic) {
  return {name, channels, Floats(channels), statistic ? Floats() : Floats(channels), statistic};
}

}  // namespace

BatchNorm::BatchNorm(size_t batch, const ImageShape& input, Activation activation, const std::string& name)
    : Layer(batch, input),
      activation_(activation),
      scale_(per_channel(name + ".scale", input.channels, false)),
      shift_(per_channel(name + ".shift", input.channels, false)),
      mean_(per_channel(name + ".mean", input.channels, true)),
      variance_(per_channel(name + ".variance", input.channels, true)),
      normal_(batch, input),
      batch_mean_(input.channels),
      batch_variance_(input.channels),
      inverse_deviation_(input.channels),
      factor_(input.channels),
      offset_(input.channels) {
  assert(input.border == 0 && input.channels % kLanes == 0);
}

void BatchNorm::start(RandomStream /*random*/) {
  std::fill_n(scale_.values.data(), scale_.count, 1.0f);
  std::fill_n(variance_.values.data(), variance_.count, 1.0f);
  shift_.values.clear();
  mean_.values.clear();
}

void BatchNorm::forward(const Images& input, size_t images, Pass pass) {
  const ImageShape& shape = output_.shape();
  const size_t rows = images * shape.pixels();
  if (pass == Pass::kPrediction) {
    for (size_t c = 0; c < shape.channels; ++c) {
      factor_[c] = scale_.values[c] / std::sqrt(variance_.values[c] + kEpsilon);
      offset_[c] = shift_.values[c] - mean_.values[c] * factor_[c];
    }
    neural_kernels().affine(input.data(), rows, shape.channels, factor_.data(), offset_.data(), activation_,
                            output_.data());
    return;
  }
  neural_kernels().norm_forward({input.data(), rows, shape.channels, scale_.values.data(),
                                 shift_.values.data(), kEpsilon, activation_, normal_.data(), output_.data(),
                                 batch_mean_.data(), batch_variance_.data(), inverse_deviation_.data()});
  if (rows < 2) return;
  const float unbiased = static_cast<float>(rows) / static_cast<float>(rows - 1);
  for (size_t c = 0; c < shape.channels; ++c) {
    float& mean = mean_.values[c];
    float& variance = variance_.values[c];
    mean = (1 - kMomentum) * mean + kMomentum * batch_mean_[c];
    variance = (1 - kMomentum) * variance + kMomentum * (unbiased * batch_variance_[c]);
  }
}

void BatchNorm::backward(const Images& /*input*/, size_t images, Images* input_gradient) {
  const ImageShape& shape = output_.shape();
  const size_t rows = images * shape.pixels();
  neural_kernels().norm_backward({output_gradient_.data(), rows, shape.channels, normal_.data(),
                                  scale_.values.data(), shift_.values.data(), inverse_deviation_.data(),
                                  activation_, scale_.gradient.data(), shift_.gradient.data()});
  if (input_gradient != nullptr)
    std::copy_n(output_gradient_.data(), rows * shape.channels, input_gradient->data());
}

}  // namespace bitfed
