#pragma once

#include "bitfed/bits/bit_matrix.h"

namespace bitfed {

// Booleanized samples: images of bits, a table being images of one row and one column with a plane for
// every bit. Bit (x * planes + plane) of row (sample * height + y): the bits of a patch's row lie side
// by side.
struct BitImages {
  size_t count = 0;
  size_t height = 0;
  size_t width = 0;
  size_t planes = 0;
  BitMatrix bits;

  BitImages() = default;
  BitImages(size_t count_, size_t height_, size_t width_, size_t planes_)
      : count(count_),
        height(height_),
        width(width_),
        planes(planes_),
        bits(count_ * height_, width_ * planes_) {}

  const uint64_t* row(size_t sample, size_t y) const { return bits.row(sample * height + y); }
};

}  // namespace bitfed
