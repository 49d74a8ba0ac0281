#include "bitfed/nn/binary/binary_convolution.h"

#include <algorithm>
#include <cassert>

namespace bitfed {
namespace {

// The largest factor with which no sum of `depth` numbers times ±1 leaves 32 bits, and no number 16.
float fixed_point_factor(float largest, size_t depth) {
  const size_t most = std::min<size_t>(INT16_MAX, INT32_MAX / depth);
  return static_cast<float>(most) / largest;
}

}  // namespace

BinaryConvolution::BinaryConvolution(size_t batch, const ImageShape& input, size_t channels,
                                     const RotatedOptions& options, const std::string& name,
                                     const ConvolutionKernel& kernel)
    : Layer(batch, {kernel.steps(input.height), kernel.steps(input.width), channels, 0},
            GradientPlace::kOutput),
      input_(input),
      kernel_(kernel),
      rotated_(channels, kernel.taps() * input.channels, options, name),
      filters_(kernel, input.channels, channels),
      gradient_(channels, kernel.taps() * input.channels),
      tail_(4 * channels),
      places_(patch_places(batch, ImageShape{input.height, input.width, filters_.pixel_words(), 1}, kernel)),
      products_(make_sign_products(batch, input, output_.shape(), kernel)) {
  assert(input.border == 1 && input.channels % kLanes == 0 && channels % kLanes == 0);
  const ImageShape& out = output_.shape();
  for (size_t i = 0; i < batch * out.pixels(); ++i) {
    const size_t y = i / out.width % out.height * kernel.stride;
    const size_t x = i % out.width * kernel.stride;
    cases_.push_back(SignFilters::case_of(y, x, input.height, input.width));
  }
}

void BinaryConvolution::forward(const Images& input, size_t images, Pass pass) {
  const Matrix& signs = rotated_.forward();
  for (size_t f = 0; f < signs.rows; ++f) filters_.set(f, signs.row(f));
  if (pass == Pass::kTraining) products_->take_weights(signs);
  const size_t pixels = images * output_.shape().pixels();
  binary_kernels().sign_sums(
      filters_.patches(input.words(), input.row_words(), places_.data(), cases_.data(), pixels / 4),
      output_.data());
  if (pixels % 4 != 0) sum_tail(input, pixels);
}

// The last pixels, fewer than four.
void BinaryConvolution::sum_tail(const Images& input, size_t pixels) {
  const size_t first = pixels / 4 * 4;
  uint32_t places[4];
  uint8_t cases[4];
  for (size_t i = 0; i < 4; ++i) {
    const size_t pixel = std::min(first + i, pixels - 1);
    places[i] = places_[pixel];
    cases[i] = cases_[pixel];
  }
  binary_kernels().sign_sums(filters_.patches(input.words(), input.row_words(), places, cases, 1),
                             tail_.data());
  const size_t channels = output_.shape().channels;
  std::copy_n(tail_.data(), (pixels - first) * channels, output_.data() + first * channels);
}

void BinaryConvolution::go_back(const Images& input, size_t images, bool adds, Images* gradient) {
  const ImageShape& out = output_.shape();
  const size_t count = images * out.image_floats();
  const size_t depth = std::max(images * out.pixels(), kernel_.taps() * out.channels);
  const std::optional<float> known = output_gradient().take_largest();
  const float largest = known ? *known : neural_kernels().largest_magnitude(output_gradient().data(), count);
  if (!(largest > 0)) {
    // 0: there is none. Not a number: none that integers could carry, and nobody must take it for one.
    std::fill_n(gradient_.row(0), gradient_.values.size(), largest);
    if (gradient != nullptr && !(adds && largest == 0))
      std::fill_n(gradient->data(), images * input_.pixels() * input_.channels, largest);
  } else {
    const float factor = fixed_point_factor(largest, depth);
    products_->go_back(output_gradient(), input, images, factor, &gradient_, gradient, adds);
  }
  rotated_.backward(gradient_);
}

std::vector<std::vector<float>> BinaryConvolution::deployed() {
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

void BinaryWeightConvolution::backward_beside(const Images& input, size_t images, const Images& beside,
                                              Images* input_gradient) {
  Convolution::backward_beside(input, images, beside, input_gradient);
  pass_weight_gradient();
}

void BinaryWeightConvolution::pass_weight_gradient() {
  for (size_t f = 0; f < gradient_.rows; ++f) {
    for (size_t i = 0; i < gradient_.columns; ++i) gradient_.row(f)[i] = weights().gradient.row(i)[f];
  }
  rotated_.backward(gradient_);
}

std::vector<std::vector<float>> BinaryWeightConvolution::deployed() {
  take_signs();
  return {weights().numbers()};
}

}  // namespace bitfed
