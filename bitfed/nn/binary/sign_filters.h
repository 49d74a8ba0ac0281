#pragma once

#include <cstdint>
#include <vector>

#include "bitfed/bits/bit_matrix.h"
#include "bitfed/nn/convolution/convolution_geometry.h"
#include "bitfed/nn/kernels/binary_kernels.h"

namespace bitfed {

// The signs of a convolution's weights as bits, for binary_kernels().
//
// The border about an image has bits of 0, which must count for nothing. How much they would count depends on
// how far a patch reaches beyond the image on each side: patches that reach equally far are a case, and each
// filter has a base (see SignPatches) for every case.
class SignFilters {
 public:
  // Larger kernels have more cases than a byte can number.
  static constexpr size_t kMaxSide = 15;

  SignFilters() = default;
  // `input`: the size and channels of the images.
  SignFilters(const ConvolutionKernel& kernel, const ImageShape& input, size_t filters);

  // The weights of a filter by row and column of the kernel, then channel; 0 counts as +1.
  void set(size_t filter, const float* weights);

  size_t count() const { return filters_; }
  // Words that a pixel's channels take, also in an image of signs.
  size_t pixel_words() const { return Images::words_of(channels_); }

  // Signs in images whose rows take `row_words`, with the offset and the case of every pixel's patch.
  SignPatches patches(const uint32_t* image, size_t row_words, const uint32_t* offsets, const uint8_t* cases,
                      size_t quads) const;

  // The case of the output's pixel (y, x).
  uint8_t case_of(size_t y, size_t x) const {
    return static_cast<uint8_t>(row_cases_.of_output[y] * column_cases_.inside.size() +
                                column_cases_.of_output[x]);
  }

 private:
  // Along one axis: taps from `begin` up to `end` meet the image.
  struct Taps {
    size_t begin, end;
    bool operator==(const Taps&) const = default;
  };
  struct AxisCases {
    AxisCases() = default;
    AxisCases(const ConvolutionKernel& kernel, size_t pixels);

    std::vector<Taps> inside;        // all that occur, at most kernel.side
    std::vector<uint8_t> of_output;  // the index in `inside` of every pixel of the output
  };

  int32_t sum_inside(const Taps& rows, const Taps& columns) const;

  ConvolutionKernel kernel_;
  size_t channels_ = 0;
  size_t filters_ = 0;
  AxisCases row_cases_, column_cases_;
  AlignedVector<uint32_t> words_;
  AlignedVector<int32_t> bases_;
  std::vector<uint32_t> filter_words_;
  std::vector<int32_t> zero_sums_;  // of the filter at hand, by tap: its sum with a pixel of zero bits
};

}  // namespace bitfed
