#include "bitfed/nn/sign_activation.h"

#include <cassert>
#include <cmath>

namespace bitfed {
namespace {

constexpr float kEpsilon = 1e-12f;  // an image of equal values has no deviation

}  // namespace

SignActivation::SignActivation(size_t batch, const ImageShape& input, size_t border)
    : Layer(batch, {input.height, input.width, input.channels, border}),
      normal_(batch, input),
      inverse_deviations_(batch) {
  assert(input.border == 0);
}

void SignActivation::forward(const Images& input, size_t images, Pass /*pass*/) {
  const ImageShape& shape = normal_.shape();
  const size_t count = shape.image_floats();
  for (size_t image = 0; image < images; ++image) {
    const float* x = input.row(image, 0);
    // In doubles: a float sum of thousands of values would lose digits, and its order matter.
    double sum = 0;
    for (size_t i = 0; i < count; ++i) sum += x[i];
    const auto mean = static_cast<float>(sum / static_cast<double>(count));
    double squares = 0;
    for (size_t i = 0; i < count; ++i) squares += static_cast<double>(x[i] - mean) * (x[i] - mean);
    const double variance = squares / static_cast<double>(count);
    const auto inverse = static_cast<float>(1 / std::sqrt(variance + kEpsilon));
    float* normal = normal_.row(image, 0);
    for (size_t i = 0; i < count; ++i) normal[i] = (x[i] - mean) * inverse;
    inverse_deviations_[image] = inverse;
    for (size_t y = 0; y < shape.height; ++y) {
      const float* from = normal_.row(image, y);
      float* to = output_.row(image, y);
      for (size_t i = 0; i < shape.row_floats(); ++i) to[i] = from[i] >= 0 ? 1.0f : -1.0f;
    }
  }
}

void SignActivation::backward(const Images& /*input*/, size_t images, Images* input_gradient) {
  const size_t count = normal_.shape().image_floats();
  const auto share = 1 / static_cast<double>(count);
  for (size_t image = 0; image < images; ++image) {
    const float* normal = normal_.row(image, 0);
    const float* from = output_gradient_.row(image, 0);
    float* gradient = input_gradient->row(image, 0);
    double sum = 0;
    double along = 0;
    for (size_t i = 0; i < count; ++i) {
      gradient[i] = from[i] * surrogate_.slope(normal[i]);
      sum += gradient[i];
      along += static_cast<double>(gradient[i]) * normal[i];
    }
    const auto mean = static_cast<float>(sum * share);
    const auto slope = static_cast<float>(along * share);
    for (size_t i = 0; i < count; ++i)
      gradient[i] = (gradient[i] - mean - normal[i] * slope) * inverse_deviations_[image];
  }
}

}  // namespace bitfed
