#pragma once

#include "bitfed/bits/bit_matrix.h"

namespace bitfed {

// Booleanized samples: images with `planes` bits per pixel. A table's row is an image of one pixel with a
// plane for every bit. Layout: bit (x * planes + plane) of row (sample * height + y), so that the bits of one
// row of a patch are contiguous.
struct BitImages {
  size_t count = 0;
  size_t height = 0;
  size_t width = 0;
  size_t planes = 0;
  BitMatrix bits;

  BitImages() = default;
  BitImages(size_t samples, size_t rows, size_t columns, size_t bits_per_pixel)
      : count(samples),
        height(rows),
        width(columns),
        planes(bits_per_pixel),
        bits(samples * rows, columns * bits_per_pixel) {}

  const uint64_t* row(size_t sample, size_t y) const { return bits.row(sample * height + y); }
};

}  // namespace bitfed
