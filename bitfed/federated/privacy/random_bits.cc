#include "bitfed/federated/privacy/random_bits.h"

#include <sys/random.h>

#include <array>
#include <bit>
#include <cerrno>
#include <memory>

#include "bitfed/base/error.h"

namespace bitfed {

RandomWords system_random_words() {
  struct Buffer {
    std::array<uint64_t, 32> words;  // 256 bytes: so many come whole, or not at all
    size_t used = 32;
  };
  return [buffer = std::make_shared<Buffer>()] {
    if (buffer->used == buffer->words.size()) {
      ssize_t got = 0;
      do {
        got = getrandom(buffer->words.data(), sizeof buffer->words, 0);
      } while (got < 0 && errno == EINTR);
      if (got != static_cast<ssize_t>(sizeof buffer->words))
        throw failure("the system's random generator gives no numbers");
      buffer->used = 0;
    }
    uint64_t& word = buffer->words[buffer->used++];
    const uint64_t result = word;
    word = 0;  // what noise was made of does not stay in memory
    return result;
  };
}

RandomWords seeded_random_words(const StreamKey& key) {
  return [random = RandomStream(key)]() mutable { return random.next_u64(); };
}

bool RandomBits::bit() {
  if (bits_left_ == 0) {
    word_ = words_();
    bits_left_ = 64;
  }
  const bool result = (word_ & 1) != 0;
  word_ >>= 1;
  --bits_left_;
  return result;
}

uint64_t RandomBits::below(uint64_t bound) {
  const int width = std::bit_width(bound - 1);
  while (true) {
    uint64_t value = 0;
    for (int i = 0; i < width; ++i) value = value << 1 | static_cast<uint64_t>(bit());
    if (value < bound) return value;
  }
}

// Compares a uniform number with the fraction, bit by bit from the first one after the point: the first bit
// in which they differ decides.
bool RandomBits::with_probability(Wide numerator, Wide denominator) {
  if (numerator >= denominator) return true;
  while (numerator > 0) {
    numerator <<= 1;
    const bool fraction = numerator >= denominator;
    if (fraction) numerator -= denominator;
    if (bit() != fraction) return fraction;
  }
  return false;
}

// Canonne, Kamath, Steinke 2020, algorithm 1.
bool RandomBits::with_probability_exp_fraction(Wide numerator, Wide denominator) {
  uint64_t k = 1;
  while (with_probability(numerator, denominator) && with_probability(1, k)) ++k;
  return k % 2 == 1;
}

bool RandomBits::with_probability_exp(Wide numerator, Wide denominator) {
  for (; numerator > denominator; numerator -= denominator) {
    if (!with_probability_exp_fraction(1, 1)) return false;
  }
  return with_probability_exp_fraction(numerator, denominator);
}

}  // namespace bitfed
