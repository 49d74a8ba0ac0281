// NEON, which every 64-bit ARM has. A block is four registers.

#include "bitfed/bits/isa/match_clauses.h"
#include "bitfed/bits/isa/units.h"

#if defined(__aarch64__)

#include <arm_neon.h>

namespace bitfed::isa {
namespace {

// Set bits of each 64-bit lane.
uint64x2_t count_lanes(uint64x2_t x) {
  return vpaddlq_u32(vpaddlq_u16(vpaddlq_u8(vcntq_u8(vreinterpretq_u8_u64(x)))));
}

size_t count_word(uint64_t x) {
  return vaddv_u8(vcnt_u8(vcreate_u8(x)));
}

size_t count_bits(const uint64_t* a, size_t words) {
  uint64x2_t sum = vdupq_n_u64(0);
  size_t i = 0;
  for (; i + 2 <= words; i += 2) sum = vaddq_u64(sum, count_lanes(vld1q_u64(a + i)));
  return vaddvq_u64(sum) + (i < words ? count_word(a[i]) : 0);
}

size_t differing_bits(const uint64_t* a, const uint64_t* b, size_t words) {
  uint64x2_t sum = vdupq_n_u64(0);
  size_t i = 0;
  for (; i + 2 <= words; i += 2) {
    sum = vaddq_u64(sum, count_lanes(veorq_u64(vld1q_u64(a + i), vld1q_u64(b + i))));
  }
  return vaddvq_u64(sum) + (i < words ? count_word(a[i] ^ b[i]) : 0);
}

double squared_distance(const double* a, const double* b, size_t count) {
  float64x2_t part[4] = {vdupq_n_f64(0), vdupq_n_f64(0), vdupq_n_f64(0), vdupq_n_f64(0)};
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (size_t p = 0; p < 4; ++p) {
      const float64x2_t difference = vsubq_f64(vld1q_f64(a + i + 2 * p), vld1q_f64(b + i + 2 * p));
      part[p] = vaddq_f64(part[p], vmulq_f64(difference, difference));
    }
  }
  double sums[8];
  for (size_t p = 0; p < 4; ++p) vst1q_f64(sums + 2 * p, part[p]);
  for (size_t lane = 0; i < count; ++i, ++lane) sums[lane] += (a[i] - b[i]) * (a[i] - b[i]);
  for (size_t half = 4; half > 0; half /= 2) {
    for (size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  }
  return sums[0];
}

size_t select_bit(const uint64_t* words, size_t rank) {
  size_t index = 0;
  for (;; ++index) {
    const size_t count = count_word(words[index]);
    if (rank < count) break;
    rank -= count;
  }
  uint64_t word = words[index];
  for (; rank > 0; --rank) word &= word - 1;  // clears the lowest set bit
  return 64 * index + static_cast<size_t>(__builtin_ctzll(word));
}

struct Block {
  uint64x2_t part[4];

  static Block zero() { return {{vdupq_n_u64(0), vdupq_n_u64(0), vdupq_n_u64(0), vdupq_n_u64(0)}}; }
  static Block load(const uint64_t* from) {
    return {{vld1q_u64(from), vld1q_u64(from + 2), vld1q_u64(from + 4), vld1q_u64(from + 6)}};
  }
  void store(uint64_t* to) const {
    for (int p = 0; p < 4; ++p) vst1q_u64(to + 2 * p, part[p]);
  }
  Block operator&(const Block& other) const {
    Block both;
    for (int p = 0; p < 4; ++p) both.part[p] = vandq_u64(part[p], other.part[p]);
    return both;
  }
  Block operator|(const Block& other) const {
    Block either;
    for (int p = 0; p < 4; ++p) either.part[p] = vorrq_u64(part[p], other.part[p]);
    return either;
  }
  bool is_set() const {
    const uint64x2_t any = vorrq_u64(vorrq_u64(part[0], part[1]), vorrq_u64(part[2], part[3]));
    return vmaxvq_u32(vreinterpretq_u32_u64(any)) != 0;
  }
};

// Four bits to four lanes of all ones or all zeros.
int32x4_t lanes_where(uint64_t bits) {
  const uint32_t bit[4] = {1, 2, 4, 8};
  return vreinterpretq_s32_u32(vtstq_u32(vdupq_n_u32(static_cast<uint32_t>(bits)), vld1q_u32(bit)));
}

int64_t sum_chosen(const int32_t* values, const uint64_t* chosen, size_t count) {
  int64x2_t sum = vdupq_n_s64(0);
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const int32x4_t kept = vandq_s32(vld1q_s32(values + i), lanes_where(chosen[i / 64] >> (i % 64)));
    sum = vpadalq_s32(sum, kept);
  }
  int64_t total = vaddvq_s64(sum);
  for (; i < count; ++i) total += (chosen[i / 64] >> (i % 64) & 1) != 0 ? values[i] : 0;
  return total;
}

void add_chosen(int64_t value, const uint64_t* chosen, size_t blocks, int64_t* sums) {
  const int64x2_t addend = vdupq_n_s64(value);
  const uint64_t bit_values[2] = {1, 2};
  const uint64x2_t bit = vld1q_u64(bit_values);
  for (size_t w = 0; w < 8 * blocks; ++w) {
    const uint64_t word = chosen[w];
    if (word == 0) continue;  // most words: few samples match a clause
    for (size_t part = 0; part < 32; ++part) {
      int64_t* at = sums + 64 * w + 2 * part;
      const int64x2_t mask = vreinterpretq_s64_u64(vtstq_u64(vdupq_n_u64(word >> (2 * part)), bit));
      vst1q_s64(at, vaddq_s64(vld1q_s64(at), vandq_s64(addend, mask)));
    }
  }
}

void split_window(const uint64_t* strip, size_t from, const uint64_t* valid, size_t blocks, uint64_t* holds,
                  uint64_t* fails) {
  const uint64_t* source = strip + from / 64;
  // A shift by a negative amount is a right shift; by -64 or 64, the result is 0.
  const int64x2_t right = vdupq_n_s64(-static_cast<int64_t>(from % 64));
  const int64x2_t left = vdupq_n_s64(64 - static_cast<int64_t>(from % 64));
  for (size_t w = 0; w < 8 * blocks; w += 2) {
    const uint64x2_t low = vshlq_u64(vld1q_u64(source + w), right);
    const uint64x2_t high = vshlq_u64(vld1q_u64(source + w + 1), left);
    const uint64x2_t bits = vorrq_u64(low, high);
    const uint64x2_t within = vld1q_u64(valid + w);
    vst1q_u64(holds + w, vandq_u64(bits, within));
    vst1q_u64(fails + w, vbicq_u64(within, bits));
  }
}

// Shifts left, then inserts the bits that fell out.
template <int kBy>
uint64x2_t rotate(uint64x2_t x) {
  return vsriq_n_u64(vshlq_n_u64(x, kBy), x, 64 - kBy);
}

// Two of the eight generators.
struct TwoLanes {
  uint64x2_t s0;
  uint64x2_t s1;

  uint64x2_t draw() {
    const uint64x2_t result = vaddq_u64(rotate<17>(vaddq_u64(s0, s1)), s0);
    const uint64x2_t mixed = veorq_u64(s1, s0);
    s0 = veorq_u64(veorq_u64(rotate<49>(s0), mixed), vshlq_n_u64(mixed, 21));
    s1 = rotate<28>(mixed);
    return result;
  }
};

struct Lanes {
  TwoLanes pair[4];

  explicit Lanes(const RandomLanes* lanes) {
    for (int p = 0; p < 4; ++p) pair[p] = {vld1q_u64(lanes->s0 + 2 * p), vld1q_u64(lanes->s1 + 2 * p)};
  }
  void store_to(RandomLanes* lanes) const {
    for (int p = 0; p < 4; ++p) {
      vst1q_u64(lanes->s0 + 2 * p, pair[p].s0);
      vst1q_u64(lanes->s1 + 2 * p, pair[p].s1);
    }
  }
};

// Bit i % 8 in byte i.
uint8x16_t bit_of_byte() {
  return vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
}

// 64 bytes of 0 or 255 to 64 bits: each byte keeps its own bit, and three pairwise additions reduce eight
// bytes to one.
uint64_t pack_bits(const uint8x16_t* bytes) {
  const uint8x16_t bit = bit_of_byte();
  const uint8x16_t low = vpaddq_u8(vandq_u8(bytes[0], bit), vandq_u8(bytes[1], bit));
  const uint8x16_t high = vpaddq_u8(vandq_u8(bytes[2], bit), vandq_u8(bytes[3], bit));
  const uint8x16_t fours = vpaddq_u8(low, high);
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(fours, fours)), 0);
}

void bernoulli(RandomLanes* lanes, unsigned threshold, size_t words, uint64_t* out) {
  Lanes random(lanes);
  const uint8x16_t bound = vdupq_n_u8(static_cast<uint8_t>(threshold));
  const uint64_t always = threshold > 255 ? ~uint64_t{0} : 0;  // 256 does not fit a byte
  for (size_t w = 0; w < words; ++w) {
    uint8x16_t less[4];
    for (int p = 0; p < 4; ++p) less[p] = vcltq_u8(vreinterpretq_u8_u64(random.pair[p].draw()), bound);
    out[w] = pack_bits(less) | always;
  }
  random.store_to(lanes);
}

void bernoulli16(RandomLanes* lanes, unsigned threshold, size_t words, uint64_t* out) {
  Lanes random(lanes);
  const uint16x8_t bound = vdupq_n_u16(static_cast<uint16_t>(threshold));
  const uint64_t always = threshold > 65535 ? ~uint64_t{0} : 0;
  for (size_t w = 0; w < words; ++w) {
    uint8x16_t less[4];
    for (int half = 0; half < 4; ++half) {  // halves of two draws
      TwoLanes* pair = random.pair + half % 2 * 2;
      const uint16x8_t low = vcltq_u16(vreinterpretq_u16_u64(pair[0].draw()), bound);
      const uint16x8_t high = vcltq_u16(vreinterpretq_u16_u64(pair[1].draw()), bound);
      less[half] = vcombine_u8(vmovn_u16(low), vmovn_u16(high));
    }
    out[w] = pack_bits(less) | always;
  }
  random.store_to(lanes);
}

// 16 mask bits to 16 bytes of 0 or 1.
uint8x16_t ones_where(uint64_t mask) {
  const uint8x16_t bytes = vcombine_u8(vdup_n_u8(static_cast<uint8_t>(mask)),  //
                                       vdup_n_u8(static_cast<uint8_t>(mask >> 8)));
  return vandq_u8(vtstq_u8(bytes, bit_of_byte()), vdupq_n_u8(1));
}

bool step_automata(uint8_t* states, const uint64_t* up, const uint64_t* down, size_t words, uint64_t* actions,
                   uint64_t* changes) {
  const uint8x16_t middle = vdupq_n_u8(128);
  uint64_t changed = 0;
  for (size_t w = 0; w < words; ++w) {
    uint8x16_t action_bytes[4];
    for (int r = 0; r < 4; ++r) {
      uint8_t* part = states + 64 * w + 16 * r;
      const uint8x16_t risen = vqaddq_u8(vld1q_u8(part), ones_where(up[w] >> (16 * r)));
      const uint8x16_t state = vqsubq_u8(risen, ones_where(down[w] >> (16 * r)));
      vst1q_u8(part, state);
      action_bytes[r] = vcgeq_u8(state, middle);
    }
    const uint64_t action = pack_bits(action_bytes);
    changes[w] = action ^ actions[w];
    changed |= changes[w];
    actions[w] = action;
  }
  return changed != 0;
}

constexpr Kernels kTable = {
    InstructionSet::kNeon, "neon",     count_bits, differing_bits, squared_distance, select_bit,
    match_clauses<Block>,  sum_chosen, add_chosen, split_window,   bernoulli,        bernoulli16,
    step_automata};

}  // namespace

const Kernels& neon_kernels() {
  return kTable;
}

}  // namespace bitfed::isa

#endif
