#include "bitfed/nn/norm/batch_norm.h"

#include <cassert>

namespace bitfed {

BatchNorm::BatchNorm(size_t batch, const ImageShape& input, Activation activation, const std::string& name)
    : Layer(batch, input),
      activation_(activation),
      norm_(input.used_channels(), name),
      batch_mean_(input.channels),
      batch_variance_(input.channels),
      inverse_std_(input.channels),
      factor_(input.channels),
      offset_(input.channels) {
  assert(input.border == 0 && input.channels % kLanes == 0);
}

void BatchNorm::forward(const Images& input, size_t images, Pass pass) {
  const ImageShape& shape = output_.shape();
  const size_t rows = images * shape.pixels();
  if (pass == Pass::kPrediction) {
    norm_.fold(&factor_, &offset_);
    neural_kernels().affine(input.data(), rows, shape.channels, factor_.data(), offset_.data(), activation_,
                            output_.data());
    return;
  }
  neural_kernels().norm_forward({input.data(), rows, shape.channels, norm_.scale.values.row(0),
                                 norm_.shift.values.row(0), NormParameters::kEpsilon, activation_,
                                 output_.data(), batch_mean_.data(), batch_variance_.data(),
                                 inverse_std_.data()});
  norm_.accumulate(batch_mean_, batch_variance_, rows);
}

void BatchNorm::backward(const Images& input, size_t images, Images* input_gradient) {
  const ImageShape& shape = output_.shape();
  float* gradient = output_gradient().data();
  const float max_abs = neural_kernels().norm_backward(
      {gradient, images * shape.pixels(), shape.channels, input.data(), batch_mean_.data(),
       inverse_std_.data(), norm_.scale.values.row(0), norm_.shift.values.row(0), activation_,
       norm_.scale.gradient.row(0), norm_.shift.gradient.row(0),
       input_gradient == nullptr ? gradient : input_gradient->data()});
  if (input_gradient != nullptr) input_gradient->set_max_abs(max_abs);
}

}  // namespace bitfed
