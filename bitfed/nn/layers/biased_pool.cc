#include "bitfed/nn/layers/biased_pool.h"

#include <cassert>

#include "bitfed/nn/layers/activation_layer.h"

namespace bitfed {

BiasedPool::BiasedPool(size_t batch, const ImageShape& input, Activation activation, const std::string& name,
                       size_t fan_in)
    : Layer(batch, {input.height / 2, input.width / 2, input.channels, 0, input.padding_channels}),
      activation_(activation),
      bias_(input, name, fan_in) {
  assert(input.border == 0 && input.channels % kLanes == 0 && output_.shape().pixels() > 0);
  assert(activation != Activation::kSign);
}

BiasPool BiasedPool::pool(const Images& input, size_t image) const {
  const ImageShape& shape = input.shape();
  return {input.row(image, 0), shape.height, shape.width, shape.channels, bias_.values(), activation_};
}

void BiasedPool::forward(const Images& input, size_t images, Pass /*pass*/) {
  for (size_t image = 0; image < images; ++image)
    neural_kernels().bias_pool(pool(input, image), output_.row(image, 0));
}

// An image at a time: a cache holds its gradient from one pass to the next.
void BiasedPool::backward(const Images& input, size_t images, Images* input_gradient) {
  assert(input_gradient != nullptr);
  bias_.begin_gradient();
  for (size_t image = 0; image < images; ++image) {
    float* to = input_gradient->row(image, 0);
    neural_kernels().bias_pool_backward(pool(input, image), output_gradient().row(image, 0),
                                        clip_bounds(activation_), to);
    bias_.add_gradient(to, input.shape().pixels());
  }
}

}  // namespace bitfed
