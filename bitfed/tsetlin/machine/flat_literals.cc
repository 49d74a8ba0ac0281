#include "bitfed/tsetlin/machine/flat_literals.h"

#include <algorithm>
#include <cassert>

namespace bitfed {

FlatLiterals::FlatLiterals(const PatchShape& shape)
    : shape_(shape), bitmaps_((shape.literals() + 1) * kBlockWords) {
  assert(shape.is_flat());
}

void FlatLiterals::load(const BitImages& images, size_t begin) {
  assert(images.height == shape_.height && images.width == shape_.width && images.planes == shape_.planes);
  count_ = std::min(kSamples, images.count - begin);
  std::fill_n(bitmap(filler()), kBlockWords, uint64_t{0});
  for (size_t i = 0; i < count_; ++i) set_bit(bitmap(filler()), i);
  const size_t row_bits = shape_.width * shape_.planes;
  uint64_t square[64];
  // Words beyond the last sample keep stale bits: loaded() masks them.
  for (size_t word = 0; word < words_for(count_); ++word) {
    const size_t first = 64 * word;
    const size_t samples = std::min<size_t>(64, count_ - first);
    for (size_t y = 0; y < shape_.height; ++y) {
      for (size_t column = 0; column < row_bits; column += 64) {
        std::fill_n(square, 64, uint64_t{0});
        for (size_t i = 0; i < samples; ++i) square[i] = images.row(begin + first + i, y)[column / 64];
        transpose_64(square);
        for (size_t i = 0; i < std::min<size_t>(64, row_bits - column); ++i) {
          const size_t feature = y * row_bits + column + i;
          bitmap(feature)[word] = square[i];
          bitmap(feature + shape_.features())[word] = ~square[i] & loaded()[word];
        }
      }
    }
  }
}

}  // namespace bitfed
