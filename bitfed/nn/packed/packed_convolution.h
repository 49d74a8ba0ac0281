#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bitfed/nn/layers/folded_norm.h"
#include "bitfed/nn/kernels/matrix.h"
#include "bitfed/nn/products/sign_filters.h"

namespace bitfed {

// A convolution of signs with signs as it is deployed, on bits, and the batch norm behind it. Its inputs are
// the signs of an image's values about their mean: (x - mean) / deviation >= 0 is x >= mean, so that the
// deviation is not needed. Static: about a mean that is given; then what stands before a convolution's signs
// can give them by itself, each by a threshold of its whole sum.
class PackedConvolution {
 public:
  struct Numbers {
    std::vector<uint8_t> signs;  // bits by row and column of the kernel, input channel, then filter
    FoldedNorm norm;
    ConvolutionKernel kernel;
    std::optional<float> mean = {};  // static: about which its inputs' signs are taken
  };

  // What comes out: all pixels row by row, or those of 2 x 2 pools, of which the largest is left.
  enum class Order { kRows, kPools };

  PackedConvolution(const Numbers& numbers, size_t height, size_t width, size_t channels, Order order);

  // Of its output. Rows of pixels are worked off in fours, and some floats behind the last pixel are written.
  size_t height() const { return out_height_; }
  size_t width() const { return out_width_; }
  size_t filters() const { return filters_.count(); }
  size_t output_floats() const;

  // Words of the signs of an image, with a border of a pixel.
  size_t sign_words() const { return (height_ + 2) * row_words(); }
  void take_signs(const float* values, uint32_t* signs) const;
  void clear_signs(uint32_t* signs) const;

  // Of a static one whose output is that of `next`'s signs alone: makes it ready for give_signs().
  void prepare_signs(const PackedConvolution& next);
  bool gives_signs() const { return !least_.empty(); }
  // The signs of the output clipped to ±1, into a cleared image of signs of the next convolution.
  void give_signs(const uint32_t* signs, uint32_t* next) const;

  // The pools, clipped to ±1.
  void pool(const uint32_t* signs, float* out) const;
  // All pixels, with a shortcut (which may be `out`) added if there is one.
  void norm(const uint32_t* signs, const float* shortcut, bool clips, float* out) const;

 private:
  size_t row_words() const { return (width_ + 2) * filters_.pixel_words(); }
  void set_filters(const Numbers& numbers);
  void add_place(size_t y, size_t x);
  SignPatches patches(const uint32_t* signs) const;

  ConvolutionKernel kernel_;
  Order order_;
  std::optional<float> mean_;
  size_t height_, width_, channels_;  // of its input
  size_t out_height_, out_width_;
  SignFilters filters_;
  Floats factor_, offset_;
  std::vector<uint32_t> places_;  // see SignPatches
  std::vector<uint8_t> cases_;
  std::vector<int32_t> least_;  // see SignThresholds
  std::vector<uint32_t> next_places_;
};

}  // namespace bitfed
