#include "bitfed/nn/batch_norm.h"

#include <algorithm>
#include <cassert>

#include "bitfed/nn/folded_norm.h"

namespace bitfed {
namespace {

constexpr float kMomentum = 0.1f;

}  // namespace

BatchNorm::BatchNorm(size_t batch, const ImageShape& input, Activation activation, const std::string& name)
    : Layer(batch, input),
      activation_(activation),
      scale_(name + ".scale", 1, input.channels),
      shift_(name + ".shift", 1, input.channels),
      mean_(name + ".mean", 1, input.channels, true),
      variance_(name + ".variance", 1, input.channels, true),
      normal_(batch, input),
      batch_mean_(input.channels),
      batch_variance_(input.channels),
      inverse_deviation_(input.channels),
      factor_(input.channels),
      offset_(input.channels) {
  assert(input.border == 0 && input.channels % kLanes == 0);
}

void BatchNorm::start(RandomStream /*random*/) {
  std::fill_n(scale_.values.row(0), scale_.count(), 1.0f);
  std::fill_n(variance_.values.row(0), variance_.count(), 1.0f);
  shift_.values.values.clear();
  mean_.values.values.clear();
}

void BatchNorm::forward(const Images& input, size_t images, Pass pass) {
  const ImageShape& shape = output_.shape();
  const size_t rows = images * shape.pixels();
  if (pass == Pass::kPrediction) {
    const auto numbers = [&](const Parameter& parameter) {
      return std::span(parameter.values.row(0), shape.channels);
    };
    const FoldedNorm norm = fold_norm(numbers(scale_), numbers(shift_), numbers(mean_), numbers(variance_));
    std::copy(norm.factor.begin(), norm.factor.end(), factor_.data());
    std::copy(norm.offset.begin(), norm.offset.end(), offset_.data());
    neural_kernels().affine(input.data(), rows, shape.channels, factor_.data(), offset_.data(), activation_,
                            output_.data());
    return;
  }
  neural_kernels().norm_forward({input.data(), rows, shape.channels, scale_.values.row(0),
                                 shift_.values.row(0), kEpsilon, activation_, normal_.data(), output_.data(),
                                 batch_mean_.data(), batch_variance_.data(), inverse_deviation_.data()});
  if (rows < 2) return;
  const float unbiased = static_cast<float>(rows) / static_cast<float>(rows - 1);
  for (size_t c = 0; c < shape.channels; ++c) {
    float& mean = mean_.values.row(0)[c];
    float& variance = variance_.values.row(0)[c];
    mean = (1 - kMomentum) * mean + kMomentum * batch_mean_[c];
    variance = (1 - kMomentum) * variance + kMomentum * (unbiased * batch_variance_[c]);
  }
}

void BatchNorm::backward(const Images& /*input*/, size_t images, Images* input_gradient) {
  const ImageShape& shape = output_.shape();
  const size_t rows = images * shape.pixels();
  neural_kernels().norm_backward({output_gradient_.data(), rows, shape.channels, normal_.data(),
                                  scale_.values.row(0), shift_.values.row(0), inverse_deviation_.data(),
                                  activation_, scale_.gradient.row(0), shift_.gradient.row(0)});
  if (input_gradient != nullptr)
    std::copy_n(output_gradient_.data(), rows * shape.channels, input_gradient->data());
}

}  // namespace bitfed
