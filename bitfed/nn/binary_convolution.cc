#include "bitfed/nn/binary_convolution.h"

namespace bitfed {
namespace {

constexpr size_t kRotationIterations = 3;

}  // namespace

BinaryConvolution::BinaryConvolution(size_t batch, const ImageShape& input, size_t channels,
                                     const RotatedOptions& options, const std::string& name,
                                     const ConvolutionKernel& kernel)
    : Convolution(batch, input, channels, name, kernel),
      rotated_(channels, kernel.side * kernel.side * input.channels, options, name) {}

void BinaryConvolution::forward(const Images& input, size_t images, Pass pass) {
  rotated_.forward(&weights().values);
  Convolution::forward(input, images, pass);
}

void BinaryConvolution::backward(const Images& input, size_t images, Images* input_gradient) {
  Convolution::backward(input, images, input_gradient);
  rotated_.backward(weights().gradient);
}

void BinaryConvolution::begin_epoch(double part) {
  rotated_.begin_epoch(kRotationIterations, part);
}

std::vector<std::vector<float>> BinaryConvolution::deployed() {
  rotated_.forward(&weights().values);
  return {weights().numbers()};
}

}  // namespace bitfed
