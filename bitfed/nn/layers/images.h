#pragma once

#include <optional>
#include <utility>

#include "bitfed/nn/kernels/matrix.h"

namespace bitfed {

// The size of a layer's images and of the border of zeros about each. Channels are padded to kLanes, except
// in a network's input; padding channels are always 0.
struct ImageShape {
  size_t height = 1;
  size_t width = 1;
  size_t channels = 1;
  size_t border = 0;
  size_t padding_channels = 0;  // the last ones of `channels`

  size_t pixels() const { return height * width; }
  size_t row_floats() const { return (width + 2 * border) * channels; }
  size_t image_floats() const { return (height + 2 * border) * row_floats(); }
  // Offset of the pixel (0, 0), after the border.
  size_t first_pixel() const { return border * row_floats() + border * channels; }
  size_t used_channels() const { return channels - padding_channels; }
  ImageShape without_border() const { return with_border(0); }
  ImageShape with_border(size_t pixels_wide) const {
    return {height, width, channels, pixels_wide, padding_channels};
  }
  bool operator==(const ImageShape&) const = default;
};

// A shape of `used_channels`, padded to kLanes.
inline ImageShape padded_shape(size_t height, size_t width, size_t used_channels, size_t border) {
  const size_t channels = padded(used_channels);
  return {height, width, channels, border, channels - used_channels};
}

// A batch of images: [image][row][column][channel], with the border's rows and columns. Values are floats;
// or, if all are signs, bits: 1 for +1 and 0 for -1, channel c of a pixel at bit c % 32 of its word c / 32,
// and 0 in the border and in unused bits.
class Images {
 public:
  Images() = default;
  Images(size_t batch, const ImageShape& shape)
      : batch_(batch), shape_(shape), values_(batch * shape.image_floats()) {}

  static Images of_bits(size_t batch, const ImageShape& shape) {
    Images images(0, shape);
    images.batch_ = batch;
    images.words_ = Aligned<uint32_t>(batch * images.image_words());
    return images;
  }

  // Optional cache of max(abs(value)), not a number if a value is not finite: set by the writer of a gradient
  // after its last write, consumed once by BinaryConvolution for its fixed-point scale. Asking for memory to
  // write to forgets it.
  void set_max_abs(float max_abs) { max_abs_ = max_abs; }
  std::optional<float> take_max_abs() { return std::exchange(max_abs_, std::nullopt); }

  size_t batch() const { return batch_; }
  const ImageShape& shape() const { return shape_; }
  float* data() {
    max_abs_.reset();
    return values_.data();
  }
  const float* data() const { return values_.data(); }
  // The first pixel of a row, after its border.
  float* row(size_t image, size_t y) { return data() + offset(image, y); }
  const float* row(size_t image, size_t y) const { return values_.data() + offset(image, y); }

  // Images of bits.
  size_t pixel_words() const { return words_of(shape_.channels); }
  size_t row_words() const { return (shape_.width + 2 * shape_.border) * pixel_words(); }
  size_t image_words() const { return (shape_.height + 2 * shape_.border) * row_words(); }
  uint32_t* words() { return words_.data(); }
  const uint32_t* words() const { return words_.data(); }
  uint32_t* word_row(size_t image, size_t y) { return words_.data() + word_offset(image, y); }
  const uint32_t* word_row(size_t image, size_t y) const { return words_.data() + word_offset(image, y); }

  static size_t words_of(size_t channels) { return (channels + 31) / 32; }

 private:
  size_t offset(size_t image, size_t y) const {
    return image * shape_.image_floats() + shape_.first_pixel() + y * shape_.row_floats();
  }
  size_t word_offset(size_t image, size_t y) const {
    return image * image_words() + (y + shape_.border) * row_words() + shape_.border * pixel_words();
  }

  size_t batch_ = 0;
  ImageShape shape_;
  Floats values_;
  Aligned<uint32_t> words_;
  std::optional<float> max_abs_;
};

}  // namespace bitfed
