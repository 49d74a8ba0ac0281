#pragma once

#include "bitfed/nn/layers/images.h"

namespace bitfed {

// Signs as bits, read and made one by one. Pixels count from the border's first on.
inline bool bit_at(const Images& images, size_t image, size_t row, size_t column, size_t channel) {
  const uint32_t* pixel = images.words() + image * images.image_words() + row * images.row_words() +
                          column * images.pixel_words();
  return (pixel[channel / 32] >> (channel % 32) & 1) != 0;
}

inline Images bits_of(const Images& signs) {
  const ImageShape& shape = signs.shape();
  Images bits = Images::of_bits(signs.batch(), shape);
  for (size_t image = 0; image < signs.batch(); ++image) {
    for (size_t y = 0; y < shape.height; ++y) {
      for (size_t i = 0; i < shape.width * shape.channels; ++i) {
        const size_t x = i / shape.channels;
        const size_t channel = i % shape.channels;
        uint32_t& word = bits.word_row(image, y)[x * bits.pixel_words() + channel / 32];
        if (signs.row(image, y)[i] > 0) word |= 1u << (channel % 32);
      }
    }
  }
  return bits;
}

}  // namespace bitfed
