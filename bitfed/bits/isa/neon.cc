// NEON, which every 64-bit ARM has. A block is four registers.

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

bool is_zero(uint64x2_t x) {
  return vmaxvq_u32(vreinterpretq_u32_u64(x)) == 0;
}

// The whole result stays in registers: 4 for one block, 8 for two.
template <size_t kBlocks>
bool and_fixed(const uint64_t* rows, const uint16_t* index, size_t count, const uint64_t* first,
               uint64_t* out, size_t* last) {
  constexpr size_t kRegisters = 4 * kBlocks;
  uint64x2_t result[kRegisters];
  for (size_t r = 0; r < kRegisters; ++r) result[r] = vld1q_u64(first + 2 * r);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t* row = rows + index[i] * (8 * kBlocks);
    uint64x2_t any = vdupq_n_u64(0);
    for (size_t r = 0; r < kRegisters; ++r) {
      result[r] = vandq_u64(result[r], vld1q_u64(row + 2 * r));
      any = vorrq_u64(any, result[r]);
    }
    if (is_zero(any)) {
      *last = i;
      return false;
    }
  }
  for (size_t r = 0; r < kRegisters; ++r) vst1q_u64(out + 2 * r, result[r]);
  return true;
}

bool and_rows(const uint64_t* rows, size_t blocks, const uint16_t* index, size_t count, const uint64_t* first,
              uint64_t* out, size_t* last) {
  if (blocks == 1) return and_fixed<1>(rows, index, count, first, out, last);
  if (blocks == 2) return and_fixed<2>(rows, index, count, first, out, last);
  const size_t words = 8 * blocks;
  for (size_t w = 0; w < words; w += 2) vst1q_u64(out + w, vld1q_u64(first + w));
  for (size_t i = 0; i < count; ++i) {
    const uint64_t* row = rows + index[i] * words;
    uint64x2_t any = vdupq_n_u64(0);
    for (size_t w = 0; w < words; w += 2) {
      const uint64x2_t both = vandq_u64(vld1q_u64(out + w), vld1q_u64(row + w));
      vst1q_u64(out + w, both);
      any = vorrq_u64(any, both);
    }
    if (is_zero(any)) {
      *last = i;
      return false;
    }
  }
  return true;
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

// 64 bytes of 0 or 255 to 64 bits: each keeps the bit that is its own, and three pairwise additions
// gather eight bytes into one.
uint64_t gather(const uint8x16_t* bytes) {
  const uint8x16_t bit = bit_of_byte();
  const uint8x16_t low = vpaddq_u8(vandq_u8(bytes[0], bit), vandq_u8(bytes[1], bit));
  const uint8x16_t high = vpaddq_u8(vandq_u8(bytes[2], bit), vandq_u8(bytes[3], bit));
  const uint8x16_t fours = vpaddq_u8(low, high);
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(fours, fours)), 0);
}

void bernoulli(RandomLanes* lanes, unsigned threshold, size_t words, uint64_t* out) {
  Lanes random(lanes);
  const uint8x16_t bound = vdupq_n_u8(static_cast<uint8_t>(threshold));
  const uint64_t always = threshold > 255 ? ~uint64_t{0} : 0;
  for (size_t w = 0; w < words; ++w) {
    uint8x16_t less[4];
    for (int p = 0; p < 4; ++p) less[p] = vcltq_u8(vreinterpretq_u8_u64(random.pair[p].draw()), bound);
    out[w] = gather(less) | always;
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
    out[w] = gather(less) | always;
  }
  random.store_to(lanes);
}

// 16 mask bits to 16 bytes of 0 or 1.
uint8x16_t ones_where(uint64_t mask) {
  const uint8x16_t bytes = vcombine_u8(vdup_n_u8(static_cast<uint8_t>(mask)),  //
                                       vdup_n_u8(static_cast<uint8_t>(mask >> 8)));
  return vandq_u8(vtstq_u8(bytes, bit_of_byte()), vdupq_n_u8(1));
}

bool step_automata(uint8_t* states, const uint64_t* up, const uint64_t* down, size_t words,
                   uint64_t* actions) {
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
    const uint64_t action = gather(action_bytes);
    changed |= action ^ actions[w];
    actions[w] = action;
  }
  return changed != 0;
}

constexpr Kernels kTable = {"neon",    count_bits,  differing_bits, and_rows,
                            bernoulli, bernoulli16, step_automata};

}  // namespace

const Kernels& neon_kernels() {
  return kTable;
}

}  // namespace bitfed::isa

#endif
