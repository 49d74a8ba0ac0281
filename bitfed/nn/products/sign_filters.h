#pragma once

#include <cstdint>
#include <vector>

#include "bitfed/bits/bit_matrix.h"
#include "bitfed/nn/kernels/binary_kernels.h"
#include "bitfed/nn/layers/convolution_geometry.h"

namespace bitfed {

// The signs of a convolution's weights as bits, for binary_kernels().
class SignFilters {
 public:
  SignFilters() = default;
  SignFilters(const ConvolutionKernel& kernel, size_t channels, size_t filters);

  // The weights of a filter by row and column of the kernel, then channel; 0 counts as +1.
  void set(size_t filter, const float* weights);

  size_t count() const { return filters_; }
  // Words that a pixel's channels take, also in an image of signs.
  size_t pixel_words() const { return Images::words_of(channels_); }

  // Signs in images whose rows take `row_words`, about pixels of these places and cases.
  SignPatches patches(const uint32_t* image, size_t row_words, const uint32_t* places, const uint8_t* cases,
                      size_t quads) const;

  // What a 3 x 3 patch about a pixel goes beyond, as SignPatches has its cases; a 1 x 1 patch's is 0. Beyond
  // an image its bits must be 0, and count for nothing.
  static uint8_t case_of(size_t y, size_t x, size_t height, size_t width);

 private:
  ConvolutionKernel kernel_;
  size_t channels_ = 0;
  size_t filters_ = 0;
  AlignedVector<uint32_t> words_;
  AlignedVector<int32_t> bases_;
  std::vector<uint32_t> filter_words_;
};

}  // namespace bitfed
