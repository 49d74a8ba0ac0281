#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bitfed/nn/binary/sign_filters.h"
#include "bitfed/nn/kernels/matrix.h"
#include "bitfed/nn/norm/folded_norm.h"

namespace bitfed {

// A convolution of signs with signs as it is deployed, on bits, and the batch norm behind it. Its inputs are
// the signs of an image's values about their mean: (x - mean) / deviation >= 0 is x >= mean, so the standard
// deviation is not needed. Static: about a mean that is given; then the convolution before it can give these
// signs itself, each by a threshold of its integer sum.
class PackedConvolution {
 public:
  struct Values {
    std::vector<uint8_t> signs;  // bits by row and column of the kernel, input channel, then filter
    FoldedNorm norm;
    ConvolutionKernel kernel;
    std::optional<float> mean = {};     // static: its inputs' signs are about this
    std::optional<size_t> border = {};  // about an image of signs; at least the kernel's padding, the default
  };

  // The output: all pixels row by row, or the largest of every 2 x 2.
  enum class Order { kRows, kPools };

  PackedConvolution(const Values& values, size_t height, size_t width, size_t channels, Order order);

  // Of its output. Pixels are processed in fours: up to three behind the last one are written.
  size_t height() const { return out_height_; }
  size_t width() const { return out_width_; }
  size_t filters() const { return filters_.count(); }
  size_t output_floats() const;

  // Words of the signs of an image with its border.
  size_t sign_words() const { return (height_ + 2 * border_) * row_words(); }
  void take_signs(const float* values, uint32_t* signs) const;

  // Where `next` is static and nothing else takes this output: makes it ready for give_signs().
  void prepare_signs(const PackedConvolution& next);
  bool gives_signs() const { return !thresholds_.empty(); }
  bool has_static_mean() const { return mean_.has_value(); }
  bool pools() const { return order_ == Order::kPools; }
  // The signs of the output clipped to ±1, as the next convolution takes them.
  void give_signs(const uint32_t* signs, uint32_t* next) const;

  // The pools, clipped to ±1.
  void pool(const uint32_t* signs, float* out) const;
  // All pixels, with a shortcut (which may be `out`) added if there is one.
  void norm(const uint32_t* signs, const float* shortcut, bool clips, float* out) const;

 private:
  size_t row_words() const { return (width_ + 2 * border_) * filters_.pixel_words(); }
  void set_filters(const Values& values);
  void add_patch(size_t y, size_t x);  // of the convolution's output pixel
  SignPatches patches(const uint32_t* signs) const;

  ConvolutionKernel kernel_;
  Order order_;
  std::optional<float> mean_;
  size_t border_;                     // about an image of signs
  size_t height_, width_, channels_;  // of its input
  size_t out_height_, out_width_;
  SignFilters filters_;
  Floats factor_, offset_;
  std::vector<uint32_t> offsets_;  // see SignPatches
  std::vector<uint8_t> cases_;
  std::vector<int32_t> thresholds_;  // see SignThresholds
  std::vector<uint32_t> next_offsets_;
  size_t next_words_ = 0;
};

}  // namespace bitfed
