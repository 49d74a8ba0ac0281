#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace bitfed {

// Eight interleaved xoroshiro128++ generators (Blackman and Vigna, 2019): one draw is a block of 64 random
// bytes, for eight instructions on the widest unit. Seeded from a counter-based stream for every sample, so
// that a draw depends only on the sample's position in the training. A plain struct: the units of different
// instruction sets share its layout and no code.
struct RandomLanes {
  alignas(64) uint64_t s0[8];
  alignas(64) uint64_t s1[8];
};

// Literals of a clause that are processed together.
inline constexpr size_t kLiteralGroup = 8;

// Clauses as lists of literals. A list consists of one or more groups of kLiteralGroup literals; the last
// group is padded with `filler`, the index of a bitmap of ones.
struct ClauseSpan {
  size_t count;
  const uint32_t* first;   // offset of clause c's list in `literals` …
  const uint16_t* groups;  // … and its number of groups
  uint16_t* literals;
  uint16_t filler;
  const uint64_t* masks;  // the initial bits of each clause, `mask_stride` words apart
  size_t mask_stride;     // 0: one mask for all clauses
};

// kAvx512 counts bits in registers. kVnni is for processors that cannot: AVX2 here, AVX-512 for real numbers.
// kAmx is kAvx512 with products in tiles for neural networks.
enum class InstructionSet : uint8_t { kScalar, kAvx2, kVnni, kAvx512, kAmx, kNeon };

// The bit-level kernels, one table per instruction set. Every unit gives the same bits as the plain loops in
// isa/scalar.cc. Pointers to blocks (512 bits) are aligned to 64 bytes. Kernels have no state: any number of
// threads may call them.
struct Kernels {
  InstructionSet instruction_set;  // other layers choose their own tables by this
  const char* name;

  // Set bits of `words` words, and bits that differ between two arrays of them: the dot product of two
  // vectors of n signs is n - 2 * differing_bits.
  size_t (*count_bits)(const uint64_t* a, size_t words);
  size_t (*differing_bits)(const uint64_t* a, const uint64_t* b, size_t words);

  // The sum of (a - b)^2, as eight partial sums (of every eighth term) that are added by halves (4 + 4, 2 +
  // 2, 1 + 1): the same bits on every unit.
  double (*squared_distance)(const double* a, const double* b, size_t count);

  // The index of set bit number `rank` (from 0); more than `rank` bits must be set.
  size_t (*select_bit)(const uint64_t* words, size_t rank);

  // For every clause, the AND of its mask and of the bitmaps of its literals. A bitmap has `blocks` blocks;
  // literal l's begins at block l * blocks of `bitmaps`. Bit c of `fired` is set if any bit of clause c
  // remains; `matches` of a clause that did not fire is undefined. Reorders the literals of a list, which has
  // no effect on the result; fillers stay in place.
  void (*match_clauses)(const uint64_t* bitmaps, size_t blocks, const ClauseSpan& clauses, uint64_t* matches,
                        uint64_t* fired);

  // The sum of the values whose bits in `chosen` are set; bits from `count` on must be zero.
  int64_t (*sum_chosen)(const int32_t* values, const uint64_t* chosen, size_t count);

  // Adds `value` to each of 512 * blocks sums whose bit in `chosen` is set.
  void (*add_chosen)(int64_t value, const uint64_t* chosen, size_t blocks, int64_t* sums);

  // holds = the bits of `strip` from bit `from` on, AND `valid`; fails = their complement, AND `valid`;
  // `blocks` blocks each. The strip must be readable for one block beyond its last bit.
  void (*split_window)(const uint64_t* strip, size_t from, const uint64_t* valid, size_t blocks,
                       uint64_t* holds, uint64_t* fails);

  // out = `words` words of bits that are set with probability threshold / 256 each: one random byte per bit,
  // one draw per word.
  void (*bernoulli)(RandomLanes* lanes, unsigned threshold, size_t words, uint64_t* out);

  // The same with probability threshold / 65536, two bytes per bit and two draws per word.
  void (*bernoulli16)(RandomLanes* lanes, unsigned threshold, size_t words, uint64_t* out);

  // Updates byte automata: +1 where `up` is set, -1 where `down` is set, saturating at 0 and 255. `words`
  // words of masks, 64 automata each. `actions` receives the top bits of the states, `changes` the bits of
  // `actions` that flipped. True if any flipped.
  bool (*step_automata)(uint8_t* states, const uint64_t* up, const uint64_t* down, size_t words,
                        uint64_t* actions, uint64_t* changes);
};

// The table in use: the best that this CPU supports, or the one named by the environment variable BITFED_ISA
// (scalar, avx2, vnni, avx512, amx, neon). An unknown or unsupported name is an input_error at first use.
const Kernels& kernels();

// All tables that this CPU can run, scalar first, the best last.
std::vector<const Kernels*> supported_kernels();

// Makes `name` the table in use, for tests and benchmarks. Not while kernels run in other threads.
void force_kernels(std::string_view name);

}  // namespace bitfed
