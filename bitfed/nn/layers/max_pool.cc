#include "bitfed/nn/layers/max_pool.h"

#include <algorithm>
#include <cassert>

namespace bitfed {

MaxPool::MaxPool(size_t batch, const ImageShape& input, size_t window)
    : Layer(batch, {input.height / window, input.width / window, input.channels, 0, input.padding_channels}),
      window_(window),
      chosen_(batch * output_.shape().image_floats()) {
  assert(input.border == 0 && output_.shape().pixels() > 0 && window * window <= UINT16_MAX);
}

void MaxPool::forward(const Images& input, size_t images, Pass /*pass*/) {
  const ImageShape& shape = output_.shape();
  uint16_t* chosen = chosen_.data();
  float* largest = output_.data();
  for (size_t row = 0; row < images * shape.height; ++row) {
    for (size_t x = 0; x < shape.width; ++x, largest += shape.channels, chosen += shape.channels) {
      for (size_t i = 0; i < window_ * window_; ++i) {
        const float* pixel = input.row(row / shape.height, row % shape.height * window_ + i / window_) +
                             (x * window_ + i % window_) * shape.channels;
        for (size_t c = 0; c < shape.channels; ++c) {
          const bool larger = i == 0 || pixel[c] > largest[c];
          largest[c] = larger ? pixel[c] : largest[c];
          chosen[c] = larger ? static_cast<uint16_t>(i) : chosen[c];
        }
      }
    }
  }
}

void MaxPool::backward(const Images& /*input*/, size_t images, Images* input_gradient) {
  if (input_gradient == nullptr) return;
  const ImageShape& shape = output_.shape();
  std::fill_n(input_gradient->data(), images * input_gradient->shape().image_floats(), 0.0f);
  const uint16_t* chosen = chosen_.data();
  const float* gradient = output_gradient().data();
  for (size_t row = 0; row < images * shape.height; ++row) {
    for (size_t x = 0; x < shape.width; ++x) {
      for (size_t c = 0; c < shape.channels; ++c) {
        const size_t i = *chosen++;
        float* line = input_gradient->row(row / shape.height, row % shape.height * window_ + i / window_);
        line[(x * window_ + i % window_) * shape.channels + c] = *gradient++;
      }
    }
  }
}

}  // namespace bitfed
