#include "bitfed/nn/layers/average_pool.h"

#include <algorithm>
#include <cassert>

namespace bitfed {
namespace {

ImageShape pooled(const ImageShape& input, size_t window) {
  if (window == 0) return {1, 1, input.channels, 0, input.padding_channels};
  return {input.height / window, input.width / window, input.channels, 0, input.padding_channels};
}

// Rows of pixels, `row_step` floats apart.
void average(const float* x, size_t rows, size_t columns, size_t row_step, size_t channels, float* mean) {
  std::fill_n(mean, channels, 0.0f);
  for (size_t row = 0; row < rows; ++row) {
    for (size_t column = 0; column < columns; ++column) {
      for (size_t c = 0; c < channels; ++c) mean[c] += x[row * row_step + column * channels + c];
    }
  }
  for (size_t c = 0; c < channels; ++c) mean[c] /= static_cast<float>(rows * columns);
}

}  // namespace

void average_pixels(const float* x, size_t pixels, size_t channels, float* mean) {
  average(x, 1, pixels, 0, channels, mean);
}

AveragePool::AveragePool(size_t batch, const ImageShape& input, size_t window)
    : Layer(batch, pooled(input, window)),
      window_height_(window == 0 ? input.height : window),
      window_width_(window == 0 ? input.width : window) {
  assert(input.border == 0 && output_.shape().pixels() > 0);
}

void AveragePool::forward(const Images& input, size_t images, Pass /*pass*/) {
  const ImageShape& shape = output_.shape();
  for (size_t image = 0; image < images; ++image) {
    for (size_t y = 0; y < shape.height; ++y) {
      const float* from = input.row(image, y * window_height_);
      for (size_t x = 0; x < shape.width; ++x) {
        average(from + x * window_width_ * shape.channels, window_height_, window_width_,
                input.shape().row_floats(), shape.channels, output_.row(image, y) + x * shape.channels);
      }
    }
  }
}

void AveragePool::backward(const Images& /*input*/, size_t images, Images* input_gradient) {
  if (input_gradient == nullptr) return;
  const ImageShape& shape = output_.shape();
  const auto pixels = static_cast<float>(window_height_ * window_width_);
  std::fill_n(input_gradient->data(), images * input_gradient->shape().image_floats(), 0.0f);
  for (size_t image = 0; image < images; ++image) {
    for (size_t y = 0; y < shape.height * window_height_; ++y) {
      const float* from = output_gradient().row(image, y / window_height_);
      float* to = input_gradient->row(image, y);
      for (size_t x = 0; x < shape.width * window_width_; ++x) {
        for (size_t c = 0; c < shape.channels; ++c)
          to[x * shape.channels + c] = from[x / window_width_ * shape.channels + c] / pixels;
      }
    }
  }
}

}  // namespace bitfed
