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

template <typename Work>
void ActivationLayer::for_each_run(const Range& images, const Work& work) const {
  const ImageShape& shape = output_.shape();
  if (shape.border == 0) return work(images.first, 0, images.count * shape.pixels());
  for (size_t image = images.first; image < images.first + images.count; ++image) {
    for (size_t y = 0; y < shape.height; ++y) work(image, y, shape.width);
  }
}

void ActivationLayer::activate(const Images& input, size_t images, const float* shift) {
  for_each_run({0, images}, [&](size_t image, size_t y, size_t pixels) {
    neural_kernels().affine(input.row(image, y), pixels, input.shape().channels, ones_.data(), shift,
                            activation_, output_.row(image, y));
  });
}

void ActivationLayer::pass_gradient(const Range& images, Images* gradient) {
  const Images& from = output_gradient();
  for_each_run(images, [&](size_t image, size_t y, size_t pixels) {
    neural_kernels().clip_backward(output_.row(image, y), from.row(image, y),
                                   pixels * gradient->shape().channels, clip_bounds(activation_),
                                   gradient->row(image, y));
  });
}

void ActivationLayer::forward(const Images& input, size_t images, Pass /*pass*/) {
  activate(input, images, zeros_.data());
}

void ActivationLayer::backward(const Images& /*input*/, size_t images, Images* input_gradient) {
  if (input_gradient != nullptr) pass_gradient({0, images}, input_gradient);
}

}  // namespace bitfed
