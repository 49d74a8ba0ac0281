// The reference: plain loops that define what each kernel computes. Also the fallback on any CPU.

#include <algorithm>

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

// Term i belongs to partial sum i % 8, as in a vector of eight lanes whose last load is masked.
double squared_distance(const double* a, const double* b, size_t count) {
  double sums[8] = {};
  for (size_t i = 0; i < count; ++i) sums[i % 8] += (a[i] - b[i]) * (a[i] - b[i]);
  for (size_t half = 4; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  return sums[0];
}

size_t select_bit(const uint64_t* words, size_t rank) {
  for (size_t bit = 0;; ++bit) {
    if ((words[bit / 64] >> (bit % 64) & 1) != 0 && rank-- == 0) return bit;
  }
}

// The literal that ruled a clause out moves to the front: it is likely to do so again.
bool match_clause(const uint64_t* bitmaps, size_t words, uint16_t* literals, size_t groups, uint64_t* match) {
  for (size_t i = 0; i < groups * kLiteralGroup; ++i) {
    const uint64_t* bitmap = bitmaps + literals[i] * words;
    uint64_t any = 0;
    for (size_t w = 0; w < words; ++w) any |= match[w] &= bitmap[w];
    if (any == 0) {
      std::swap(literals[0], literals[i]);
      return false;
    }
  }
  return true;
}

void match_clauses(const uint64_t* bitmaps, size_t blocks, const ClauseSpan& clauses, uint64_t* matches,
                   uint64_t* fired) {
  const size_t words = 8 * blocks;
  for (size_t clause = 0; clause < clauses.count; ++clause) {
    uint64_t* match = matches + clause * words;
    for (size_t w = 0; w < words; ++w) match[w] = clauses.masks[clause * clauses.mask_stride + w];
    if (clause % 64 == 0) fired[clause / 64] = 0;
    const bool fires =
        match_clause(bitmaps, words, clauses.literals + clauses.first[clause], clauses.groups[clause], match);
    fired[clause / 64] |= uint64_t{fires} << (clause % 64);
  }
}

int64_t sum_chosen(const int32_t* values, const uint64_t* chosen, size_t count) {
  int64_t sum = 0;
  for (size_t i = 0; i < count; ++i) {
    if ((chosen[i / 64] >> (i % 64) & 1) != 0) sum += values[i];
  }
  return sum;
}

void add_chosen(int64_t value, const uint64_t* chosen, size_t blocks, int64_t* sums) {
  for (size_t i = 0; i < 512 * blocks; ++i) {
    if ((chosen[i / 64] >> (i % 64) & 1) != 0) sums[i] += value;
  }
}

void split_window(const uint64_t* strip, size_t from, const uint64_t* valid, size_t blocks, uint64_t* holds,
                  uint64_t* fails) {
  const uint64_t* source = strip + from / 64;
  const size_t shift = from % 64;
  for (size_t w = 0; w < 8 * blocks; ++w) {
    // Two shifts: a single shift by 64 (where `shift` is 0) would be undefined, this gives 0.
    const uint64_t bits = source[w] >> shift | source[w + 1] << 1 << (63 - shift);
    holds[w] = bits & valid[w];
    fails[w] = ~bits & valid[w];
  }
}

uint64_t rotate(uint64_t x, int by) {
  return x << by | x >> (64 - by);
}

// One step of xoroshiro128++ in every lane. Lane l gives bytes 8 l … 8 l + 7 of the block, the lowest first.
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

// Bit i is set if byte i of the draw is below the threshold; a threshold of 256 sets all bits.
void bernoulli(RandomLanes* lanes, unsigned threshold, size_t words, uint64_t* out) {
  uint8_t bytes[64];
  for (size_t w = 0; w < words; ++w) {
    draw(lanes, bytes);
    uint64_t mask = 0;
    for (int bit = 0; bit < 64; ++bit) mask |= uint64_t{bytes[bit] < threshold} << bit;
    out[w] = mask;
  }
}

// The first draw gives bits 0 … 31, the second bits 32 … 63; two bytes per bit, the lower one first.
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

// `up` is applied before `down`; an automaton is included if its top bit is set, from state 128 on.
bool step_automata(uint8_t* states, const uint64_t* up, const uint64_t* down, size_t words, uint64_t* actions,
                   uint64_t* changes) {
  bool changed = false;
  for (size_t w = 0; w < words; ++w) {
    uint64_t action = 0;
    for (int bit = 0; bit < 64; ++bit) {
      uint8_t& state = states[w * 64 + static_cast<size_t>(bit)];
      if ((up[w] >> bit & 1) != 0 && state < 255) ++state;
      if ((down[w] >> bit & 1) != 0 && state > 0) --state;
      action |= uint64_t{state >= 128} << bit;
    }
    changes[w] = actions[w] ^ action;
    changed |= changes[w] != 0;
    actions[w] = action;
  }
  return changed;
}

constexpr Kernels kTable = {InstructionSet::kScalar,
                            "scalar",
                            count_bits,
                            differing_bits,
                            squared_distance,
                            select_bit,
                            match_clauses,
                            sum_chosen,
                            add_chosen,
                            split_window,
                            bernoulli,
                            bernoulli16,
                            step_automata};

}  // namespace

const Kernels& scalar_kernels() {
  return kTable;
}

}  // namespace bitfed::isa
