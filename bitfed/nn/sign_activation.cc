#include "bitfed/nn/sign_activation.h"

#include <cassert>
#include <cmath>

namespace bitfed {
namespace {

constexpr float kTiny = 1e-6f;  // an image of equal values has no deviation

}  // namespace

SignActivation::SignActivation(size_t batch, const ImageShape& input, size_t border)
    : Layer(batch, input.with_border(border)), means_(batch), inverse_deviations_(batch) {
  assert(input.border == 0 && input.channels % kLanes == 0 && input.idle_channels == 0);
}

void SignActivation::forward(const Images& input, size_t images, Pass pass) {
  const NeuralKernels& kernels = neural_kernels();
  const ImageShape& shape = input.shape();
  const size_t count = shape.image_floats();
  for (size_t image = 0; image < images; ++image) {
    const float* x = input.row(image, 0);
    const float mean = kernels.mean(x, count, count);
    for (size_t y = 0; y < shape.height; ++y)
      kernels.signs(input.row(image, y), shape.row_floats(), mean, output_.row(image, y));
    if (pass == Pass::kPrediction) continue;
    means_[image] = mean;
    inverse_deviations_[image] = 1 / (kernels.deviation(x, count, nullptr, count, mean) + kTiny);
  }
}

void SignActivation::backward(const Images& input, size_t images, Images* input_gradient) {
  const size_t count = input.shape().image_floats();
  for (size_t image = 0; image < images; ++image) {
    neural_kernels().sign_back({input.row(image, 0), count, means_[image], inverse_deviations_[image],
                                surrogate_, output_gradient_.row(image, 0), input_gradient->row(image, 0)});
  }
}

}  // namespace bitfed
