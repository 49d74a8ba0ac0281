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

// The bit-level kernels, one table per instruction set. Every unit gives the same bits, that of the
// plain loops in isa/scalar.cc. Pointers to blocks are aligned to 64 bytes.
struct Kernels {
  const char* name;

  // Set bits of `words` words, and bits that differ between two runs of them: the binary dot product
  // of n signs is n - 2 * differing_bits.
  size_t (*count_bits)(const uint64_t* a, size_t words);
  size_t (*differing_bits)(const uint64_t* a, const uint64_t* b, size_t words);

  // out = AND of the rows named by `index`, each `blocks` blocks long and beginning at block
  // index[i] * blocks of `rows`, starting from `first`. Returns false, with `out` undefined, as soon as
  // the result is found to be all zero; `*last` is then the last place in `index` that was looked at, which
  // units that look at several at a time may put later than others. `first` is never all zero.
  bool (*and_rows)(const uint64_t* rows, size_t blocks, const uint16_t* index, size_t count,
                   const uint64_t* first, uint64_t* out, size_t* last);

  // out = bits that are set with probability threshold / 256 each, `words` words: one byte of
  // randomness a bit, one draw a word.
  void (*bernoulli)(RandomLanes* lanes, unsigned threshold, size_t words, uint64_t* out);

  // The same with probability threshold / 65536 and two bytes a bit, two draws a word.
  void (*bernoulli16)(RandomLanes* lanes, unsigned threshold, size_t words, uint64_t* out);

  // Moves byte automata: +1 where `up` is set, -1 where `down` is, within 0 … 255. `words` words of
  // masks, 64 automata each. `actions` receives the top bits of the states. True if any action changed.
  bool (*step_automata)(uint8_t* states, const uint64_t* up, const uint64_t* down, size_t words,
                        uint64_t* actions);
};

// The table in use: the best that this CPU has, or the one that the environment variable BITFED_ISA
// names (scalar, avx2, avx512, neon). An unknown or unsupported name is an input_error at first use.
const Kernels& kernels();

// All tables that this CPU can run, the plain one first.
std::vector<const Kernels*> supported_kernels();

// Makes `name` the table in use, for tests and benchmarks.
void force_kernels(std::string_view name);

}  // namespace bitfed
