#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace bitfed {

// Eight xoroshiro128++ generators (Blackman and Vigna, 2019) side by side: one draw is a block of 64
// random bytes, at the price of eight instructions on the widest unit. Seeded from a counter-based
// stream for every sample, so that the draws are a function of their place in the training alone.
// A plain struct: units for different instruction sets share its layout and no code.
struct RandomLanes {
  alignas(64) uint64_t s0[8];
  alignas(64) uint64_t s1[8];
};

// Literals of a clause that are looked at together.
inline constexpr size_t kLiteralGroup = 8;

// Clauses as lists of literals. A list is made of whole groups, at least one; the last one is filled up with
// the number of a row of ones.
struct ClauseSpan {
  size_t count;
  const uint32_t* first;   // the list of clause c begins at literals[first[c]] …
  const uint16_t* groups;  // … and has this many groups
  uint16_t* literals;
  uint16_t filler;
  const uint64_t* masks;  // the bits that a clause starts from, `mask_stride` words from one to the next
  size_t mask_stride;     // 0: the same for all
};

// The bit-level kernels, one table per instruction set. Every unit gives the same bits, that of the
// plain loops in isa/scalar.cc. Pointers to blocks are aligned to 64 bytes.
struct Kernels {
  const char* name;

  // Set bits of `words` words, and bits that differ between two runs of them: the binary dot product
  // of n signs is n - 2 * differing_bits.
  size_t (*count_bits)(const uint64_t* a, size_t words);
  size_t (*differing_bits)(const uint64_t* a, const uint64_t* b, size_t words);

  // The sum of (a - b)^2, as eight partial sums (of every eighth term) that are added in halves: the same
  // bits on every unit.
  double (*squared_distance)(const double* a, const double* b, size_t count);

  // The position of the set bit number `rank` (from 0); there must be more than `rank`.
  size_t (*select_bit)(const uint64_t* words, size_t rank);

  // For every clause, the AND of its mask and of the bitmaps that its list names: `blocks` blocks each, those
  // of literal l from block l * blocks of `bitmaps`. Bit c of `fired` says whether any bit of clause c is
  // left; `matches` of a clause that did not fire is undefined. Reorders the literals of a list, which has no
  // effect on the result; fillers stay where they are.
  void (*match_clauses)(const uint64_t* bitmaps, size_t blocks, const ClauseSpan& clauses, uint64_t* matches,
                        uint64_t* fired);

  // The sum of the values whose bits are set; the bits behind `count` are zero.
  int64_t (*sum_chosen)(const int32_t* values, const uint64_t* chosen, size_t count);

  // Adds `value` to those of 512 * blocks sums whose bits are set.
  void (*add_chosen)(int64_t value, const uint64_t* chosen, size_t blocks, int64_t* sums);

  // The bits of `strip` from bit `from` on, and their complement, both within `valid`: `blocks` blocks. The
  // strip is readable for a block beyond its last bit.
  void (*split_window)(const uint64_t* strip, size_t from, const uint64_t* valid, size_t blocks,
                       uint64_t* holds, uint64_t* fails);

  // out = bits that are set with probability threshold / 256 each, `words` words: one byte of
  // randomness a bit, one draw a word.
  void (*bernoulli)(RandomLanes* lanes, unsigned threshold, size_t words, uint64_t* out);

  // The same with probability threshold / 65536 and two bytes a bit, two draws a word.
  void (*bernoulli16)(RandomLanes* lanes, unsigned threshold, size_t words, uint64_t* out);

  // Moves byte automata: +1 where `up` is set, -1 where `down` is, within 0 … 255. `words` words of
  // masks, 64 automata each. `actions` receives the top bits of the states, `changes` those of them that are
  // new. True if there are any.
  bool (*step_automata)(uint8_t* states, const uint64_t* up, const uint64_t* down, size_t words,
                        uint64_t* actions, uint64_t* changes);
};

// The table in use: the best that this CPU has, or the one that the environment variable BITFED_ISA
// names (scalar, avx2, avx512, neon). An unknown or unsupported name is an input_error at first use.
const Kernels& kernels();

// All tables that this CPU can run, the plain one first.
std::vector<const Kernels*> supported_kernels();

// Makes `name` the table in use, for tests and benchmarks.
void force_kernels(std::string_view name);

}  // namespace bitfed
