#include "bitfed/nn/binary_convolution.h"

#include <algorithm>
#include <cassert>

#include "bitfed/nn/panels.h"

namespace bitfed {
namespace {

constexpr size_t kPanelPairs = 128;  // a panel of so many stays in the first-level cache

// The largest factor with which no sum of `depth` numbers times ±1 leaves 32 bits, and no number 16.
float fixed_point_factor(float largest, size_t depth) {
  const size_t most = std::min<size_t>(INT16_MAX, INT32_MAX / depth);
  return static_cast<float>(most) / largest;
}

}  // namespace

BinaryConvolution::BinaryConvolution(size_t batch, const ImageShape& input, size_t channels,
                                     const RotatedOptions& options, const std::string& name,
                                     const ConvolutionKernel& kernel)
    : Layer(batch, {kernel.steps(input.height), kernel.steps(input.width), channels, 0}),
      input_(input),
      kernel_(kernel),
      rotated_(channels, kernel.taps() * input.channels, options, name),
      filters_(kernel, input.channels, channels),
      gradient_(channels, kernel.taps() * input.channels),
      weights_back_(gradient_.values.size()),
      signs_(batch * (input.height + 2) * (input.width + 2) * filters_.pixel_words()),
      paired_signs_((batch + 1) / 2 * 2 * input.image_floats()),
      paired_gradient_((batch + 1) / 2 * 2 * output_.shape().image_floats()),
      bordered_(output_.shape().with_border(1)),
      bordered_gradient_(batch * bordered_.image_floats()),
      panel_(2 * kPanelColumns * kPanelPairs),
      tail_(4 * channels),
      no_image_(std::max(input.image_floats(), output_.shape().image_floats())),
      places_(patch_places(batch, ImageShape{input.height, input.width, filters_.pixel_words(), 1}, kernel)),
      phases_(convolution_phases(batch, input, bordered_, kernel)) {
  assert(input.border == 1 && input.channels % kLanes == 0 && channels % kLanes == 0);
  for (const uint32_t place : patch_places(1, input, kernel)) paired_places_.push_back(2 * place);
  const ImageShape& out = output_.shape();
  for (size_t i = 0; i < batch * out.pixels(); ++i) {
    const size_t y = i / out.width % out.height * kernel.stride;
    const size_t x = i % out.width * kernel.stride;
    cases_.push_back(SignFilters::case_of(y, x, input.height, input.width));
  }
  if (phases_.size() > 1)
    phase_pixels_ = Floats(batch * phases_[0].height * phases_[0].width * input.channels);
}

void BinaryConvolution::pack_signs(const Images& input, size_t images) {
  const size_t words = filters_.pixel_words();
  const size_t row_words = (input_.width + 2) * words;
  for (size_t image = 0; image < images; ++image) {
    for (size_t y = 0; y < input_.height; ++y) {
      const size_t row = image * (input_.height + 2) + y + 1;
      binary_kernels().signs_about(input.row(image, y), input_.width, input_.channels, 0,
                                   signs_.data() + row * row_words + words);
    }
  }
}

// The way back goes from filters to inputs, with the kernel upside down: filters in pairs.
void BinaryConvolution::pack_weights_back(const Matrix& signs) {
  const size_t in = input_.channels;
  int16_t* to = weights_back_.data();
  for (const ConvolutionPhase& phase : phases_) {
    for_each_panel(in, [&](const Panel& panel) {
      for (const size_t row : phase.rows) {
        for (const size_t column : phase.columns) {
          const size_t at = (row * kernel_.side + column) * in + panel.first;
          for (size_t f = 0; f < signs.rows; f += 2, to += 2 * panel.width)
            neural_kernels().quantise_pairs(signs.row(f) + at, signs.row(f + 1) + at, panel.width, 1, to);
        }
      }
    });
  }
}

void BinaryConvolution::forward(const Images& input, size_t images, Pass pass) {
  const Matrix& signs = rotated_.forward();
  for (size_t f = 0; f < signs.rows; ++f) filters_.set(f, signs.row(f));
  if (pass == Pass::kTraining) pack_weights_back(signs);
  pack_signs(input, images);
  const size_t row_words = (input_.width + 2) * filters_.pixel_words();
  const size_t pixels = images * output_.shape().pixels();
  binary_kernels().sign_sums(
      filters_.patches(signs_.data(), row_words, places_.data(), cases_.data(), pixels / 4), output_.data());
  if (pixels % 4 != 0) sum_tail(pixels);
}

// The last pixels, fewer than four.
void BinaryConvolution::sum_tail(size_t pixels) {
  const size_t row_words = (input_.width + 2) * filters_.pixel_words();
  const size_t first = pixels / 4 * 4;
  uint32_t places[4];
  uint8_t cases[4];
  for (size_t i = 0; i < 4; ++i) {
    const size_t pixel = std::min(first + i, pixels - 1);
    places[i] = places_[pixel];
    cases[i] = cases_[pixel];
  }
  binary_kernels().sign_sums(filters_.patches(signs_.data(), row_words, places, cases, 1), tail_.data());
  const size_t channels = output_.shape().channels;
  std::copy_n(tail_.data(), (pixels - first) * channels, output_.data() + first * channels);
}

// Both forms of two images' gradients while they are in the cache.
void BinaryConvolution::fix_gradient(size_t images, float factor) {
  const ImageShape& out = output_.shape();
  for (size_t image = 0; image < images; ++image) {
    for (size_t y = 0; y < out.height; ++y) {
      neural_kernels().quantise(output_gradient_.row(image, y), out.row_floats(), factor,
                                bordered_gradient_.data() + image * bordered_.image_floats() +
                                    (y + 1) * bordered_.row_floats() + bordered_.channels);
    }
    if (image % 2 != 0 || image + 1 == images)
      pair_images(output_gradient_, image / 2, images, factor, &paired_gradient_);
  }
}

void BinaryConvolution::pair_images(const Images& from, size_t pair, size_t images, float factor,
                                    Shorts* to) const {
  const size_t count = from.shape().image_floats();
  const float* even = from.data() + 2 * pair * count;
  neural_kernels().quantise_pairs(even, 2 * pair + 1 < images ? even + count : no_image_.data(), count,
                                  factor, to->data() + 2 * pair * count);
}

void BinaryConvolution::weight_gradient(const Images& input, size_t images, float factor) {
  const size_t pairs = (images + 1) / 2;
  for (size_t pair = 0; pair < pairs; ++pair) pair_images(input, pair, images, 1, &paired_signs_);
  const size_t depth = pairs * output_.shape().pixels();
  for (size_t first = 0; first < depth; first += kPanelPairs) {
    for (size_t y = 0; y < kernel_.side; ++y)
      add_weight_gradient(first, std::min(kPanelPairs, depth - first), y, factor);
  }
}

// Of `count` pairs of pixels and a row of the kernel.
void BinaryConvolution::add_weight_gradient(size_t first, size_t count, size_t y, float factor) {
  const ImageShape& out = output_.shape();
  const size_t columns = kernel_.side * input_.channels;
  for_each_panel(columns, [&](const Panel& panel) {
    for (size_t i = 0; i < count; ++i) {
      const size_t image = (first + i) / out.pixels();
      const size_t at = image * input_.image_floats() + y * input_.row_floats() + panel.first;
      std::copy_n(paired_signs_.data() + 2 * at + paired_places_[(first + i) % out.pixels()], 2 * panel.width,
                  panel_.data() + i * 2 * panel.width);
    }
    neural_kernels().sum_pairs({paired_gradient_.data() + first * 2 * out.channels, 2 * out.channels,
                                panel_.data(), count, gradient_.row(0) + y * columns + panel.first,
                                gradient_.stride, out.channels, panel.width, 1 / factor, first > 0});
  });
}

void BinaryConvolution::input_gradient(size_t images, float factor, Images* gradient) {
  const int16_t* weights = weights_back_.data();
  for (const ConvolutionPhase& phase : phases_)
    weights = phase_gradient(phase, weights, images, factor, gradient);
}

// Returns where the next phase's weights are.
const int16_t* BinaryConvolution::phase_gradient(const ConvolutionPhase& phase, const int16_t* weights,
                                                 size_t images, float factor, Images* gradient) {
  const size_t in = input_.channels;
  const size_t pixels = images * phase.height * phase.width;
  const size_t pairs = phase.columns.size() * output_.shape().channels / 2;
  float* to = phase.is_all() ? gradient->data() : phase_pixels_.data();
  if (phase.pixels.empty()) {
    std::fill_n(to, pixels * in, 0.0f);
  } else {
    for_each_panel(in, [&](const Panel& panel) {
      neural_kernels().multiply_pairs(
          {bordered_gradient_.data(), phase.pixels.data(), phase.rows.size(), pairs, bordered_.row_floats(),
           weights + panel.first * 2 * pairs * phase.rows.size(), 2 * pairs * panel.width, to + panel.first,
           in, pixels, panel.width, 1 / factor});
    });
  }
  if (!phase.is_all()) phase.put(to, images, gradient);
  return weights + phase.rows.size() * 2 * pairs * in;
}

void BinaryConvolution::backward(const Images& input, size_t images, Images* gradient) {
  const ImageShape& out = output_.shape();
  const size_t count = images * out.image_floats();
  const size_t depth = std::max(2 * kPanelPairs, kernel_.taps() * out.channels);
  const float largest = neural_kernels().largest_magnitude(output_gradient_.data(), count);
  if (!(largest > 0)) {
    // 0: there is none. Not a number: none that integers could carry, and nobody must take it for one.
    std::fill_n(gradient_.row(0), gradient_.values.size(), largest);
    if (gradient != nullptr)
      std::fill_n(gradient->data(), images * input_.pixels() * input_.channels, largest);
  } else {
    const float factor = fixed_point_factor(largest, depth);
    fix_gradient(images, factor);
    weight_gradient(input, images, factor);
    if (gradient != nullptr) input_gradient(images, factor, gradient);
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
