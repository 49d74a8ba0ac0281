// The reference: plain loops that say what each kernel means, and the fallback on any CPU.

#include "bitfed/bits/isa/units.h"

namespace bitfed::isa {
namespace {

size_t count_bits(const uint64_t* a, size_t words) {
  size_t count = 0;
  for (size_t i = 0; i < words; ++i) count += static_cast<size_t>(__builtin_popcountll(a[i]));
  return count;
}

size_t differing_bits(const uint64_t* a, const uint64_t* b, size_t words) {
  size_t count = 0;
  for (size_t i = 0; i < words; ++i) count += static_cast<size_t>(__builtin_popcountll(a[i] ^ b[i]));
  return count;
}

bool and_rows(const uint64_t* rows, size_t blocks, const uint16_t* index, size_t count, const uint64_t* first,
              uint64_t* out, size_t* last) {
  const size_t words = blocks * 8;
  for (size_t w = 0; w < words; ++w) out[w] = first[w];
  for (size_t i = 0; i < count; ++i) {
    const uint64_t* row = rows + index[i] * words;
    uint64_t any = 0;
    for (size_t w = 0; w < words; ++w) any |= out[w] &= row[w];
    if (any == 0) {
      *last = i;
      return false;
    }
  }
  return true;
}

uint64_t rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }

void draw(RandomLanes* lanes, uint8_t* bytes) {
  for (int lane = 0; lane < 8; ++lane) {
    uint64_t& s0 = lanes->s0[lane];
    uint64_t& s1 = lanes->s1[lane];
    const uint64_t result = rotate(s0 + s1, 17) + s0;
    const uint64_t mixed = s1 ^ s0;
    s0 = rotate(s0, 49) ^ mixed ^ (mixed << 21);
    s1 = rotate(mixed, 28);
    for (int byte = 0; byte < 8; ++byte) bytes[lane * 8 + byte] = static_cast<uint8_t>(result >> (8 * byte));
  }
}

void bernoulli(RandomLanes* lanes, unsigned threshold, size_t words, uint64_t* out) {
  uint8_t bytes[64];
  for (size_t w = 0; w < words; ++w) {
    draw(lanes, bytes);
    uint64_t mask = 0;
    for (int bit = 0; bit < 64; ++bit) mask |= uint64_t{bytes[bit] < threshold} << bit;
    out[w] = mask;
  }
}

void bernoulli16(RandomLanes* lanes, unsigned threshold, size_t words, uint64_t* out) {
  uint8_t bytes[64];
  for (size_t w = 0; w < words; ++w) {
    uint64_t mask = 0;
    for (int half = 0; half < 2; ++half) {
      draw(lanes, bytes);
      for (int bit = 0; bit < 32; ++bit) {
        const unsigned value = bytes[2 * bit] | unsigned{bytes[2 * bit + 1]} << 8;
        mask |= uint64_t{value < threshold} << (32 * half + bit);
      }
    }
    out[w] = mask;
  }
}

bool step_automata(uint8_t* states, const uint64_t* up, const uint64_t* down, size_t words, uint64_t* actions) {
  bool changed = false;
  for (size_t w = 0; w < words; ++w) {
    uint64_t action = 0;
    for (int bit = 0; bit < 64; ++bit) {
      uint8_t& state = states[w * 64 + static_cast<size_t>(bit)];
      if ((up[w] >> bit & 1) != 0 && state < 255) ++state;
      if ((down[w] >> bit & 1) != 0 && state > 0) --state;
      action |= static_cast<uint64_t>(state >> 7) << bit;
    }
    changed |= actions[w] != action;
    actions[w] = action;
  }
  return changed;
}

constexpr Kernels kTable = {"scalar",  count_bits,  differing_bits, and_rows,
                            bernoulli, bernoulli16, step_automata};

}  // namespace

const Kernels& scalar_kernels() { return kTable; }

}  // namespace bitfed::isa
