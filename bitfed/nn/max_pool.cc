#include "bitfed/nn/max_pool.h"

#include <algorithm>
#include <cassert>

namespace bitfed {

MaxPool::MaxPool(size_t batch, const ImageShape& input, size_t border)
    : Layer(batch, {input.height / 2, input.width / 2, input.channels, border}) {
  assert(input.border == 0 && input.channels % kLanes == 0);
}

void MaxPool::forward(const Images& input, size_t images, Pass /*pass*/) {
  const ImageShape& shape = output_.shape();
  for (size_t image = 0; image < images; ++image) {
    for (size_t y = 0; y < shape.height; ++y) {
      neural_kernels().max_pool(input.row(image, 2 * y), input.row(image, 2 * y + 1), shape.width,
                                shape.channels, output_.row(image, y));
    }
  }
}

void MaxPool::backward(const Images& input, size_t images, Images* input_gradient) {
  const ImageShape& shape = output_.shape();
  const bool odd = input.shape().height % 2 != 0 || input.shape().width % 2 != 0;
  if (odd) std::fill_n(input_gradient->data(), images * input.shape().image_floats(), 0.0f);
  for (size_t image = 0; image < images; ++image) {
    for (size_t y = 0; y < shape.height; ++y) {
      neural_kernels().max_pool_back(input.row(image, 2 * y), input.row(image, 2 * y + 1), shape.width,
                                     shape.channels, output_gradient_.row(image, y),
                                     input_gradient->row(image, 2 * y),
                                     input_gradient->row(image, 2 * y + 1));
    }
  }
}

}  // namespace bitfed
