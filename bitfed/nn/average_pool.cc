#include "bitfed/nn/average_pool.h"

#include <algorithm>
#include <cassert>

namespace bitfed {

AveragePool::AveragePool(size_t batch, const ImageShape& input)
    : Layer(batch, {1, 1, input.channels, 0, input.idle_channels}) {
  assert(input.border == 0);
}

void AveragePool::forward(const Images& input, size_t images, Pass /*pass*/) {
  const size_t channels = input.shape().channels;
  const size_t pixels = input.shape().pixels();
  for (size_t image = 0; image < images; ++image) {
    float* mean = output_.row(image, 0);
    std::fill_n(mean, channels, 0.0f);
    const float* x = input.row(image, 0);
    for (size_t pixel = 0; pixel < pixels; ++pixel) {
      for (size_t c = 0; c < channels; ++c) mean[c] += x[pixel * channels + c];
    }
    for (size_t c = 0; c < channels; ++c) mean[c] /= static_cast<float>(pixels);
  }
}

void AveragePool::backward(const Images& input, size_t images, Images* input_gradient) {
  const size_t channels = input.shape().channels;
  const size_t pixels = input.shape().pixels();
  for (size_t image = 0; image < images; ++image) {
    const float* from = output_gradient_.row(image, 0);
    float* to = input_gradient->row(image, 0);
    for (size_t pixel = 0; pixel < pixels; ++pixel) {
      for (size_t c = 0; c < channels; ++c) to[pixel * channels + c] = from[c] / static_cast<float>(pixels);
    }
  }
}

}  // namespace bitfed
