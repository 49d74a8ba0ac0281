#include "bitfed/nn/norm/pooled_norm.h"

#include <cassert>
#include <cmath>

namespace bitfed {

PooledNorm::PooledNorm(size_t batch, const ImageShape& input, Activation activation, size_t border,
                       const std::string& name)
    : Layer(batch, {input.height / 2, input.width / 2, input.channels, border, input.padding_channels}),
      activation_(activation),
      norm_(input.used_channels(), name),
      batch_mean_(input.channels),
      batch_variance_(input.channels),
      inverse_std_(input.channels),
      factor_(input.channels),
      offset_(input.channels),
      chosen_(batch * output_.shape().pixels() * input.channels),
      slope_(input.channels),
      slope_offset_(input.channels) {
  assert(input.border == 0 && input.channels % kLanes == 0);
}

NormPool PooledNorm::pool(const Images& input, size_t images) {
  const ImageShape& shape = input.shape();
  return {input.data(),   images,         shape.height, shape.width,   shape.channels,
          factor_.data(), offset_.data(), activation_,  chosen_.data()};
}

void PooledNorm::forward(const Images& input, size_t images, Pass pass) {
  const size_t rows = images * input.shape().pixels();
  const size_t channels = input.shape().channels;
  if (pass == Pass::kPrediction) {
    norm_.fold(&factor_, &offset_);
  } else {
    neural_kernels().moments(input.data(), rows, channels, batch_mean_.data(), batch_variance_.data());
    for (size_t c = 0; c < channels; ++c) {
      inverse_std_[c] = 1 / std::sqrt(batch_variance_[c] + NormParameters::kEpsilon);
      factor_[c] = norm_.scale.values.row(0)[c] * inverse_std_[c];
      offset_[c] = norm_.shift.values.row(0)[c] - batch_mean_[c] * factor_[c];
    }
    norm_.accumulate(batch_mean_, batch_variance_, rows);
  }
  const PoolSteps offsets{output_.shape().row_floats(), output_.shape().image_floats()};
  NormPool pooled = pool(input, images);
  if (pass == Pass::kPrediction) pooled.chosen = nullptr;  // no backward pass follows
  neural_kernels().norm_pool(pooled, offsets, output_.row(0, 0));
}

void PooledNorm::backward(const Images& input, size_t images, Images* input_gradient) {
  const NormPool pooled = pool(input, images);
  float* sum = norm_.shift.gradient.row(0);
  float* along = norm_.scale.gradient.row(0);
  neural_kernels().norm_pool_sums(
      pooled, {output_gradient().data(), batch_mean_.data(), inverse_std_.data(), sum, along});
  if (input_gradient == nullptr) return;
  // A batch norm's gradient is factor * (gradient - mean of gradients - normal * mean of gradient * normal).
  const auto rows = static_cast<float>(images * input.shape().pixels());
  for (size_t c = 0; c < pooled.channels; ++c) {
    slope_[c] = -factor_[c] * inverse_std_[c] * (along[c] / rows);
    slope_offset_[c] = -slope_[c] * batch_mean_[c] - factor_[c] * (sum[c] / rows);
  }
  neural_kernels().norm_pool_backward(
      pooled, {output_gradient().data(), slope_.data(), slope_offset_.data(), input_gradient->data()});
}

}  // namespace bitfed
