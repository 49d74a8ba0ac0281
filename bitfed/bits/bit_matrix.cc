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

size_t select_bit(const uint64_t* words, size_t rank) {
  for (size_t index = 0;; ++index) {
    const size_t count = static_cast<size_t>(std::popcount(words[index]));
    if (rank >= count) {
      rank -= count;
      continue;
    }
    uint64_t word = words[index];
    for (; rank > 0; --rank) word &= word - 1;
    return index * 64 + static_cast<size_t>(std::countr_zero(word));
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
