#pragma once

#include <cassert>
#include <cstdint>
#include <vector>

#include "bitfed/nn/layers/images.h"

namespace bitfed {

// A square kernel. Padding is "same" (side / 2 zeros about the image: at stride 1 the output is as large as
// the input), or "valid" (none).
struct ConvolutionKernel {
  size_t side = 3;  // odd
  size_t stride = 1;
  bool valid = false;

  size_t padding() const { return valid ? 0 : side / 2; }
  size_t taps() const { return side * side; }
  // Pixels of the output along a side of `pixels`, which with the padding are at least `side`.
  size_t steps(size_t pixels) const {
    assert(pixels + 2 * padding() >= side);
    return (pixels + 2 * padding() - side) / stride + 1;
  }
  // The border about the output's gradient that the backward pass reads.
  size_t gradient_border() const { return side - 1 - padding(); }
};

// Offsets in the input where the patches of a batch's output pixels begin, image by image, row by row. The
// input's border is at least the kernel's padding.
std::vector<uint32_t> patch_offsets(size_t batch, const ImageShape& input, const ConvolutionKernel& kernel);

// A part of the backward pass: the input's pixels y, y + stride … of x, x + stride …, whose gradients are
// products with the same taps of the kernel. At stride 1 there is one phase, all pixels.
struct ConvolutionPhase {
  size_t y, x;
  size_t stride;
  size_t height, width;
  std::vector<size_t> rows, columns;  // of the kernel, the last first; none: these pixels get no gradient
  std::vector<uint32_t> pixels;  // offsets of every pixel's patch in the output's gradient with its border

  bool is_all() const { return stride == 1; }
  // Copies (or adds) the phase's pixels, contiguous, to where they lie in the input's gradient.
  void put(const float* pixel_gradients, size_t images, bool adds, Images* gradient) const;
};

// The phases of stride x stride; `bordered_output` has a border of at least kernel.gradient_border().
std::vector<ConvolutionPhase> convolution_phases(size_t batch, const ImageShape& input,
                                                 const ImageShape& bordered_output,
                                                 const ConvolutionKernel& kernel);

}  // namespace bitfed
