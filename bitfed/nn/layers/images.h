#pragma once

#include <optional>
#include <utility>

#include "bitfed/nn/kernels/matrix.h"

namespace bitfed {

// What a layer of images has: their size, and a border of zeros about each. Behind the first layer channels
// come in whole lanes; of a real network some of them may be there only for that, and are always 0.
struct ImageShape {
  size_t height = 1;
  size_t width = 1;
  size_t channels = 1;
  size_t border = 0;
  size_t idle_channels = 0;  // the last of them

  size_t pixels() const { return height * width; }
  size_t row_floats() const { return (width + 2 * border) * channels; }
  size_t image_floats() const { return (height + 2 * border) * row_floats(); }
  size_t used_channels() const { return channels - idle_channels; }
  ImageShape without_border() const { return with_border(0); }
  ImageShape with_border(size_t pixels_wide) const {
    return {height, width, channels, pixels_wide, idle_channels};
  }
  bool operator==(const ImageShape&) const = default;
};

// Of so many used channels, made whole lanes.
inline ImageShape shape_of_lanes(size_t height, size_t width, size_t used_channels, size_t border) {
  const size_t channels = padded(used_channels);
  return {height, width, channels, border, channels - used_channels};
}

// A batch of images: image by image, row by row, pixel by pixel, then the channels. Their numbers are floats,
// or, where all of them are signs, bits: 1 for +1, those of a pixel in whole words, and 0 in the border.
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

  // The largest magnitude of its numbers as who wrote them found it on the way, for the next one who needs
  // it.
  void set_largest(float largest) { largest_ = largest; }
  std::optional<float> take_largest() { return std::exchange(largest_, std::nullopt); }

  size_t batch() const { return batch_; }
  const ImageShape& shape() const { return shape_; }
  float* data() { return values_.data(); }
  const float* data() const { return values_.data(); }
  // The first pixel of a row, behind its border.
  float* row(size_t image, size_t y) { return values_.data() + offset(image, y); }
  const float* row(size_t image, size_t y) const { return values_.data() + offset(image, y); }

  // The same of bits.
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
    return image * shape_.image_floats() + (y + shape_.border) * shape_.row_floats() +
           shape_.border * shape_.channels;
  }
  size_t word_offset(size_t image, size_t y) const {
    return image * image_words() + (y + shape_.border) * row_words() + shape_.border * pixel_words();
  }

  size_t batch_ = 0;
  ImageShape shape_;
  Floats values_;
  Aligned<uint32_t> words_;
  std::optional<float> largest_;
};

}  // namespace bitfed
