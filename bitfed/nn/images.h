#pragma once

#include "bitfed/nn/matrix.h"

namespace bitfed {

// What a layer of images has: their size, and a border of zeros about each.
struct ImageShape {
  size_t height = 1;
  size_t width = 1;
  size_t channels = 1;
  size_t border = 0;

  size_t pixels() const { return height * width; }
  size_t row_floats() const { return (width + 2 * border) * channels; }
  size_t image_floats() const { return (height + 2 * border) * row_floats(); }
  ImageShape without_border() const { return {height, width, channels, 0}; }
  bool operator==(const ImageShape&) const = default;
};

// A batch of images: image by image, row by row, pixel by pixel, then the channels.
class Images {
 public:
  Images() = default;
  Images(size_t batch, const ImageShape& shape)
      : batch_(batch), shape_(shape), values_(batch * shape.image_floats()) {}

  size_t batch() const { return batch_; }
  const ImageShape& shape() const { return shape_; }
  float* data() { return values_.data(); }
  const float* data() const { return values_.data(); }
  // The first pixel of a row, behind its border.
  float* row(size_t image, size_t y) { return values_.data() + offset(image, y); }
  const float* row(size_t image, size_t y) const { return values_.data() + offset(image, y); }

 private:
  size_t offset(size_t image, size_t y) const {
    return image * shape_.image_floats() + (y + shape_.border) * shape_.row_floats() +
           shape_.border * shape_.channels;
  }

  size_t batch_ = 0;
  ImageShape shape_;
  Floats values_;
};

}  // namespace bitfed
