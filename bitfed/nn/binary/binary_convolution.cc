#include "bitfed/nn/binary/binary_convolution.h"

#include <algorithm>
#include <cassert>

namespace bitfed {
namespace {

// The largest factor with which values up to max_abs fit 16 bits, and sums of `depth` of them 32.
float fixed_point_factor(float max_abs, size_t depth) {
  const size_t max = std::min<size_t>(INT16_MAX, INT32_MAX / depth);
  return static_cast<float>(max) / max_abs;
}

}  // namespace

BinaryConvolution::BinaryConvolution(size_t batch, const ImageShape& input, size_t channels,
                                     const RotatedOptions& options, const std::string& name,
                                     const ConvolutionKernel& kernel)
    : AddingLayer(batch, {kernel.steps(input.height), kernel.steps(input.width), channels, 0},
                  GradientPlace::kOutput),
      input_(input),
      kernel_(kernel),
      rotated_(channels, kernel.taps() * input.channels, options, name),
      filters_(kernel, input, channels),
      gradient_(channels, kernel.taps() * input.channels),
      tail_(4 * channels),
      offsets_(patch_offsets(
          batch, ImageShape{input.height, input.width, filters_.pixel_words(), input.border}, kernel)),
      products_(make_sign_products(batch, input, output_.shape(), kernel)) {
  assert(input.channels % kLanes == 0 && channels % kLanes == 0);
  const ImageShape& out = output_.shape();
  for (size_t i = 0; i < batch * out.pixels(); ++i)
    cases_.push_back(filters_.case_of(i / out.width % out.height, i % out.width));
}

void BinaryConvolution::forward(const Images& input, size_t images, Pass pass) {
  const Matrix& signs = rotated_.forward();
  for (size_t f = 0; f < signs.rows; ++f) filters_.set(f, signs.row(f));
  if (pass == Pass::kTraining) products_->take_weights(signs);
  const size_t pixels = images * output_.shape().pixels();
  binary_kernels().sign_sums(
      filters_.patches(input.words(), input.row_words(), offsets_.data(), cases_.data(), pixels / 4),
      output_.data());
  if (pixels % 4 != 0) sum_tail(input, pixels);
}

// The last pixels, fewer than four.
void BinaryConvolution::sum_tail(const Images& input, size_t pixels) {
  const size_t first = pixels / 4 * 4;
  uint32_t offsets[4];
  uint8_t cases[4];
  for (size_t i = 0; i < 4; ++i) {
    const size_t pixel = std::min(first + i, pixels - 1);
    offsets[i] = offsets_[pixel];
    cases[i] = cases_[pixel];
  }
  binary_kernels().sign_sums(filters_.patches(input.words(), input.row_words(), offsets, cases, 1),
                             tail_.data());
  const size_t channels = output_.shape().channels;
  std::copy_n(tail_.data(), (pixels - first) * channels, output_.data() + first * channels);
}

void BinaryConvolution::backward(const Images& input, size_t images, Images* input_gradient) {
  differentiate(input, images, false, input_gradient);
}

void BinaryConvolution::backward_adding(const Images& input, size_t images, const Images& other,
                                        Images* input_gradient) {
  if (&other != input_gradient)
    std::copy_n(other.data(), images * input_gradient->shape().image_floats(), input_gradient->data());
  differentiate(input, images, true, input_gradient);
}

void BinaryConvolution::differentiate(const Images& input, size_t images, bool adds, Images* gradient) {
  const ImageShape& out = output_.shape();
  const size_t count = images * out.image_floats();
  const size_t depth = std::max(images * out.pixels(), kernel_.taps() * out.channels);
  const std::optional<float> known = output_gradient().take_max_abs();
  const float max_abs = known ? *known : neural_kernels().largest_magnitude(output_gradient().data(), count);
  if (!(max_abs > 0)) {
    // All gradients are 0, or one is not finite, which integers cannot express: all become not a number.
    std::fill_n(gradient_.row(0), gradient_.values.size(), max_abs);
    if (gradient != nullptr && !(adds && max_abs == 0))
      std::fill_n(gradient->data(), images * input_.pixels() * input_.channels, max_abs);
  } else {
    const float factor = fixed_point_factor(max_abs, depth);
    products_->backward(output_gradient(), input, images, factor, &gradient_, gradient, adds);
  }
  rotated_.backward(gradient_);
}

std::vector<std::vector<float>> BinaryConvolution::own_deployed() {
  const Matrix& signs = rotated_.forward();
  std::vector<float> by_input;
  for (size_t i = 0; i < signs.columns; ++i) {
    for (size_t f = 0; f < signs.rows; ++f) by_input.push_back(signs.row(f)[i]);
  }
  return {by_input};
}

BinaryWeightConvolution::BinaryWeightConvolution(size_t batch, const ImageShape& input, size_t channels,
                                                 const RotatedOptions& options, const std::string& name,
                                                 const ConvolutionKernel& kernel)
    : Convolution(batch, input, channels, name, kernel),
      rotated_(channels, kernel.taps() * input.channels, options, name),
      gradient_(channels, kernel.taps() * input.channels) {}

void BinaryWeightConvolution::take_signs() {
  const Matrix& signs = rotated_.forward();
  for (size_t f = 0; f < signs.rows; ++f) {
    for (size_t i = 0; i < signs.columns; ++i) weights().values.row(i)[f] = signs.row(f)[i];
  }
}

void BinaryWeightConvolution::forward(const Images& input, size_t images, Pass pass) {
  take_signs();
  Convolution::forward(input, images, pass);
}

void BinaryWeightConvolution::backward(const Images& input, size_t images, Images* input_gradient) {
  Convolution::backward(input, images, input_gradient);
  pass_weight_gradient();
}

void BinaryWeightConvolution::backward_adding(const Images& input, size_t images, const Images& other,
                                              Images* input_gradient) {
  Convolution::backward_adding(input, images, other, input_gradient);
  pass_weight_gradient();
}

void BinaryWeightConvolution::pass_weight_gradient() {
  for (size_t f = 0; f < gradient_.rows; ++f) {
    for (size_t i = 0; i < gradient_.columns; ++i) gradient_.row(f)[i] = weights().gradient.row(i)[f];
  }
  rotated_.backward(gradient_);
}

std::vector<std::vector<float>> BinaryWeightConvolution::own_deployed() {
  take_signs();
  return {weights().to_vector()};
}

}  // namespace bitfed
