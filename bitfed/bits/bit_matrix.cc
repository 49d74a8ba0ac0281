#include "bitfed/bits/bit_matrix.h"

#include <algorithm>
#include <bit>

namespace bitfed {

void or_bits(const uint64_t* source, size_t from, uint64_t* target, size_t to, size_t count) {
  while (count > 0) {
    const size_t source_shift = from % 64;
    const size_t target_shift = to % 64;
    const size_t step = std::min({count, 64 - source_shift, 64 - target_shift});
    const uint64_t mask = step == 64 ? ~uint64_t{0} : (uint64_t{1} << step) - 1;
    target[to / 64] |= (source[from / 64] >> source_shift & mask) << target_shift;
    from += step;
    to += step;
    count -= step;
  }
}

// Swaps the off-diagonal quarters of the matrix, then of each quarter, and so on (Warren, "Hacker's Delight",
// 7-3).
void transpose_64(uint64_t* square, size_t rows, size_t columns) {
  const size_t side = rows <= 32 && columns <= 32 ? 32 : 64;
  uint64_t low = side == 32 ? 0x0000ffff0000ffffu : 0x00000000ffffffffu;
  for (size_t half = side / 2; half > 0; half /= 2, low ^= low << half) {
    for (size_t top = 0; top < side; top += 2 * half) {
      for (size_t i = top; i < top + half; ++i) {
        const uint64_t swapped = (square[i] >> half ^ square[i + half]) & low;
        square[i] ^= swapped << half;
        square[i + half] ^= swapped;
      }
    }
  }
}

void bits_to_bytes(const uint64_t* words, size_t bits, uint8_t* bytes) {
  for (size_t i = 0; i < (bits + 7) / 8; ++i) bytes[i] = static_cast<uint8_t>(words[i / 8] >> (i % 8 * 8));
}

void bytes_to_bits(const uint8_t* bytes, size_t bits, uint64_t* words) {
  std::fill_n(words, words_for(bits), uint64_t{0});
  for (size_t i = 0; i < (bits + 7) / 8; ++i) words[i / 8] |= uint64_t{bytes[i]} << (i % 8 * 8);
  if (bits % 64 != 0) words[bits / 64] &= (uint64_t{1} << (bits % 64)) - 1;
}

}  // namespace bitfed
