#pragma once

#include <cstdint>
#include <vector>

#include "bitfed/nn/layers/images.h"

namespace bitfed {

struct ConvolutionKernel {
  size_t side = 3;  // 3, or 1: a pixel by itself
  size_t stride = 1;

  size_t taps() const { return side * side; }
  // Pixels of the output along a side of so many.
  size_t steps(size_t pixels) const { return (pixels - 1) / stride + 1; }
};

// Where the patch of every pixel of a batch's output begins in its input, which has a border of one.
std::vector<uint32_t> patch_places(size_t batch, const ImageShape& input, const ConvolutionKernel& kernel);

// The way back: the input's pixels y, y + stride … of x, x + stride …, whose gradients are products with the
// same taps of the kernel. Of stride 1 there is one phase, all pixels.
struct ConvolutionPhase {
  size_t y, x;
  size_t stride;
  size_t height, width;
  std::vector<size_t> rows, columns;  // of the kernel, the last first
  std::vector<uint32_t> pixels;  // where the patch of every pixel begins in the output with a border of one

  bool is_all() const { return stride == 1; }
  // From the phase's pixels, one after the other, to where they stand in the input's gradient; or adds them.
  void put(const float* pixel_gradients, size_t images, bool adds, Images* gradient) const;
};

std::vector<ConvolutionPhase> convolution_phases(size_t batch, const ImageShape& input,
                                                 const ImageShape& bordered_output,
                                                 const ConvolutionKernel& kernel);

}  // namespace bitfed
