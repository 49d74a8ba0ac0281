#include "bitfed/nn/layers/average_pool.h"

#include <algorithm>
#include <cassert>

namespace bitfed {

void average_pixels(const float* x, size_t pixels, size_t channels, float* mean) {
  std::fill_n(mean, channels, 0.0f);
  for (size_t pixel = 0; pixel < pixels; ++pixel) {
    for (size_t c = 0; c < channels; ++c) mean[c] += x[pixel * channels + c];
  }
  for (size_t c = 0; c < channels; ++c) mean[c] /= static_cast<float>(pixels);
}

AveragePool::AveragePool(size_t batch, const ImageShape& input)
    : Layer(batch, {1, 1, input.channels, 0, input.idle_channels}) {
  assert(input.border == 0);
}

void AveragePool::forward(const Images& input, size_t images, Pass /*pass*/) {
  for (size_t image = 0; image < images; ++image) {
    average_pixels(input.row(image, 0), input.shape().pixels(), input.shape().channels,
                   output_.row(image, 0));
  }
}

void AveragePool::backward(const Images& input, size_t images, Images* input_gradient) {
  const size_t channels = input.shape().channels;
  const size_t pixels = input.shape().pixels();
  for (size_t image = 0; image < images; ++image) {
    const float* from = output_gradient().row(image, 0);
    float* to = input_gradient->row(image, 0);
    for (size_t pixel = 0; pixel < pixels; ++pixel) {
      for (size_t c = 0; c < channels; ++c) to[pixel * channels + c] = from[c] / static_cast<float>(pixels);
    }
  }
}

}  // namespace bitfed
