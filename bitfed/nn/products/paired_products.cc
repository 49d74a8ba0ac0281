#include "bitfed/nn/products/paired_products.h"

#include <algorithm>

#include "bitfed/nn/kernels/panels.h"

namespace bitfed {
namespace {

constexpr size_t kPanelPairs = 128;  // a panel of this depth stays in the first-level cache

}  // namespace

PairedProducts::PairedProducts(size_t batch, const ImageShape& input, const ImageShape& output,
                               const ConvolutionKernel& kernel)
    : input_(input),
      output_(output),
      kernel_(kernel),
      weights_(output.channels * kernel.taps() * input.channels),
      paired_signs_((batch + 1) / 2 * 2 * input.image_floats()),
      paired_gradient_((batch + 1) / 2 * 2 * output.image_floats()),
      bordered_(output.with_border(kernel.gradient_border())),
      bordered_gradient_(batch * bordered_.image_floats()),
      panel_(2 * kPanelColumns * kPanelPairs),
      no_gradient_(output.image_floats()),
      sums_(weights_.size()),
      phases_(convolution_phases(batch, input, bordered_, kernel)) {
  for (const uint32_t offset : patch_offsets(1, input, kernel)) patch_pairs_.push_back(2 * offset);
  if (phases_.size() > 1)
    phase_pixels_ = Floats(batch * phases_[0].height * phases_[0].width * input.channels);
}

// The backward pass multiplies filters, in pairs, by the kernel's taps in reverse.
void PairedProducts::take_weights(const Matrix& signs) {
  const size_t in = input_.channels;
  int16_t* to = weights_.data();
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

void PairedProducts::backward(const Images& gradient, const Images& input, size_t images, float factor,
                              Matrix* of_weights, Images* of_input, bool adds) {
  take_gradient(gradient, images, factor);
  weight_gradient(input, images, factor, of_weights);
  if (of_input != nullptr) input_gradient(images, factor, adds, of_input);
}

// Quantises two images' gradients into both forms while they are in the cache.
void PairedProducts::take_gradient(const Images& gradient, size_t images, float factor) {
  for (size_t image = 0; image < images; ++image) {
    int16_t* to = bordered_gradient_.data() + image * bordered_.image_floats() + bordered_.first_pixel();
    for (size_t y = 0; y < output_.height; ++y, to += bordered_.row_floats())
      neural_kernels().quantise(gradient.row(image, y), output_.row_floats(), factor, to);
    if (image % 2 != 0 || image + 1 == images) pair_gradients(gradient, image / 2, images, factor);
  }
}

void PairedProducts::pair_gradients(const Images& gradient, size_t pair, size_t images, float factor) {
  const size_t count = output_.image_floats();
  const float* even = gradient.data() + 2 * pair * count;
  neural_kernels().quantise_pairs(even, 2 * pair + 1 < images ? even + count : no_gradient_.data(), count,
                                  factor, paired_gradient_.data() + 2 * pair * count);
}

void PairedProducts::pair_signs(const Images& input, size_t pair, size_t images) {
  const size_t even = 2 * pair;
  const size_t odd = even + 1 < images ? even + 1 : even;  // any signs do where the gradient is nothing
  int16_t* to = paired_signs_.data() + 2 * (pair * input_.image_floats() + input_.first_pixel());
  for (size_t y = 0; y < input_.height; ++y, to += 2 * input_.row_floats()) {
    neural_kernels().sign_pairs(input.word_row(even, y), input.word_row(odd, y), input_.width,
                                input_.channels, to);
  }
}

void PairedProducts::weight_gradient(const Images& input, size_t images, float factor, Matrix* gradient) {
  const size_t pairs = (images + 1) / 2;
  for (size_t pair = 0; pair < pairs; ++pair) pair_signs(input, pair, images);
  const size_t depth = pairs * output_.pixels();
  for (size_t first = 0; first < depth; first += kPanelPairs) {
    for (size_t y = 0; y < kernel_.side; ++y)
      add_weight_gradient(first, std::min(kPanelPairs, depth - first), y);
  }
  const float inverse = 1 / factor;
  float* to = gradient->row(0);
  for (size_t i = 0; i < gradient->values.size(); ++i) to[i] = static_cast<float>(sums_[i]) * inverse;
}

// Of `count` pairs of pixels and a row of the kernel.
void PairedProducts::add_weight_gradient(size_t first, size_t count, size_t y) {
  const size_t columns = kernel_.side * input_.channels;
  for_each_panel(columns, [&](const Panel& panel) {
    for (size_t i = 0; i < count; ++i) {
      const size_t image = (first + i) / output_.pixels();
      const size_t at = image * input_.image_floats() + y * input_.row_floats() + panel.first;
      std::copy_n(paired_signs_.data() + 2 * at + patch_pairs_[(first + i) % output_.pixels()],
                  2 * panel.width, panel_.data() + i * 2 * panel.width);
    }
    neural_kernels().sum_pairs({.a = paired_gradient_.data() + first * 2 * output_.channels,
                                .a_stride = 2 * output_.channels,
                                .b = panel_.data(),
                                .pairs = count,
                                .c_stride = kernel_.taps() * input_.channels,
                                .rows = output_.channels,
                                .columns = panel.width,
                                .adds = first > 0,
                                .whole_c = sums_.data() + y * columns + panel.first});
  });
}

void PairedProducts::input_gradient(size_t images, float factor, bool adds, Images* gradient) {
  const int16_t* weights = weights_.data();
  for (const ConvolutionPhase& phase : phases_) {
    if (!adds || !phase.pixels.empty()) phase_gradient(phase, weights, images, factor, adds, gradient);
    weights += phase.rows.size() * phase.columns.size() * output_.channels * input_.channels;
  }
}

void PairedProducts::phase_gradient(const ConvolutionPhase& phase, const int16_t* weights, size_t images,
                                    float factor, bool adds, Images* gradient) {
  const size_t in = input_.channels;
  const size_t pixels = images * phase.height * phase.width;
  const size_t pairs = phase.columns.size() * output_.channels / 2;
  float* to = phase.is_all() ? gradient->data() : phase_pixels_.data();
  if (phase.pixels.empty()) {
    std::fill_n(to, pixels * in, 0.0f);
  } else {
    for_each_panel(in, [&](const Panel& panel) {
      neural_kernels().multiply_pairs(
          {bordered_gradient_.data(), phase.pixels.data(), phase.rows.size(), pairs, bordered_.row_floats(),
           weights + panel.first * 2 * pairs * phase.rows.size(), 2 * pairs * panel.width, to + panel.first,
           in, pixels, panel.width, 1 / factor, adds && phase.is_all()});
    });
  }
  if (!phase.is_all()) phase.put(to, images, adds, gradient);
}

}  // namespace bitfed
