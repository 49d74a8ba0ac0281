#include "bitfed/nn/layers/activation_layer.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace bitfed {

ClipBounds clip_bounds(Activation activation) {
  assert(activation != Activation::kSign);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (activation == Activation::kHardtanh) return {-1, 1};
  return {activation == Activation::kRelu ? 0 : -kInfinity, kInfinity};
}

ActivationLayer::ActivationLayer(size_t batch, const ImageShape& input, Activation activation, size_t border)
    : Layer(batch, input.with_border(border)),
      activation_(activation),
      ones_(input.channels),
      zeros_(input.channels) {
  assert(input.border == 0 && input.channels % kLanes == 0 && activation != Activation::kSign);
  std::fill_n(ones_.data(), ones_.size(), 1.0f);
}

size_t ActivationLayer::runs(size_t images) const {
  return output_.shape().border == 0 ? 1 : images * output_.shape().height;
}

void ActivationLayer::activate(const Images& input, size_t images, const float* shift) {
  const ImageShape& shape = input.shape();
  const size_t count = runs(images);
  const size_t pixels = images * shape.pixels() / count;
  for (size_t run = 0; run < count; ++run) {
    const size_t image = run / shape.height;
    const size_t y = run % shape.height;
    neural_kernels().affine(input.row(image, y), pixels, shape.channels, ones_.data(), shift, activation_,
                            output_.row(image, y));
  }
}

void ActivationLayer::pass_gradient(size_t images, Images* gradient) {
  const ImageShape& shape = gradient->shape();
  if (gradient != &output_gradient())
    std::copy_n(output_gradient().data(), images * shape.image_floats(), gradient->data());
  const size_t count = runs(images);
  const size_t floats = images * shape.image_floats() / count;
  for (size_t run = 0; run < count; ++run) {
    const size_t image = run / shape.height;
    const size_t y = run % shape.height;
    neural_kernels().clip_backward(output_.row(image, y), floats, clip_bounds(activation_),
                                   gradient->row(image, y));
  }
}

void ActivationLayer::forward(const Images& input, size_t images, Pass /*pass*/) {
  activate(input, images, zeros_.data());
}

void ActivationLayer::backward(const Images& /*input*/, size_t images, Images* input_gradient) {
  if (input_gradient != nullptr) pass_gradient(images, input_gradient);
}

}  // namespace bitfed
