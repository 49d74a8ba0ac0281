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
  BitImages(size_t samples, size_t rows, size_t columns, size_t bits_a_place)
      : count(samples),
        height(rows),
        width(columns),
        planes(bits_a_place),
        bits(samples * rows, columns * bits_a_place) {}

  const uint64_t* row(size_t sample, size_t y) const { return bits.row(sample * height + y); }
};

}  // namespace bitfed
