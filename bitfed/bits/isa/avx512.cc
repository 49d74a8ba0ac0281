// AVX-512 with BW, VL, DQ and VPOPCNTDQ: Ice Lake, Zen 4 and later.

#include "bitfed/bits/isa/units.h"

#if defined(__AVX512BW__)

#include <immintrin.h>

namespace bitfed::isa {
namespace {

__mmask8 tail_mask(size_t words) {
  return static_cast<__mmask8>((1u << words) - 1);
}

size_t count_bits(const uint64_t* a, size_t words) {
  __m512i sum = _mm512_setzero_si512();
  size_t i = 0;
  for (; i + 8 <= words; i += 8) {
    sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(_mm512_loadu_si512(a + i)));
  }
  sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(_mm512_maskz_loadu_epi64(tail_mask(words - i), a + i)));
  return static_cast<size_t>(_mm512_reduce_add_epi64(sum));
}

size_t differing_bits(const uint64_t* a, const uint64_t* b, size_t words) {
  __m512i sum = _mm512_setzero_si512();
  size_t i = 0;
  for (; i + 8 <= words; i += 8) {
    const __m512i x = _mm512_xor_si512(_mm512_loadu_si512(a + i), _mm512_loadu_si512(b + i));
    sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(x));
  }
  const __mmask8 tail = tail_mask(words - i);
  const __m512i x =
      _mm512_xor_si512(_mm512_maskz_loadu_epi64(tail, a + i), _mm512_maskz_loadu_epi64(tail, b + i));
  sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(x));
  return static_cast<size_t>(_mm512_reduce_add_epi64(sum));
}

// kBlocks registers hold the whole result: up to 512, 1024 … positions. Testing for zero costs more than
// the AND itself, so it is done once for four rows.
template <size_t kBlocks>
bool and_fixed(const uint64_t* rows, const uint16_t* index, size_t count, const uint64_t* first,
               uint64_t* out, size_t* last) {
  constexpr size_t kWords = 8 * kBlocks;
  constexpr int kAnd = 0x80;  // the ternary logic table of a & b & c
  __m512i result[kBlocks];
  for (size_t b = 0; b < kBlocks; ++b) result[b] = _mm512_load_si512(first + 8 * b);
  const auto all_zero = [&result] {
    __m512i any = result[0];
    for (size_t b = 1; b < kBlocks; ++b) any = _mm512_or_si512(any, result[b]);
    return _mm512_test_epi64_mask(any, any) == 0;
  };
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const uint64_t* row0 = rows + index[i] * kWords;
    const uint64_t* row1 = rows + index[i + 1] * kWords;
    const uint64_t* row2 = rows + index[i + 2] * kWords;
    const uint64_t* row3 = rows + index[i + 3] * kWords;
    for (size_t b = 0; b < kBlocks; ++b) {
      const __m512i low = _mm512_and_si512(_mm512_load_si512(row0 + 8 * b), _mm512_load_si512(row1 + 8 * b));
      result[b] = _mm512_ternarylogic_epi64(result[b], low, _mm512_load_si512(row2 + 8 * b), kAnd);
      result[b] = _mm512_and_si512(result[b], _mm512_load_si512(row3 + 8 * b));
    }
    if (all_zero()) {
      *last = i + 3;
      return false;
    }
  }
  for (; i < count; ++i) {
    const uint64_t* row = rows + index[i] * kWords;
    for (size_t b = 0; b < kBlocks; ++b) {
      result[b] = _mm512_and_si512(result[b], _mm512_load_si512(row + 8 * b));
    }
  }
  if (all_zero()) {
    *last = count - 1;
    return false;
  }
  for (size_t b = 0; b < kBlocks; ++b) _mm512_store_si512(out + 8 * b, result[b]);
  return true;
}

bool and_rows(const uint64_t* rows, size_t blocks, const uint16_t* index, size_t count, const uint64_t* first,
              uint64_t* out, size_t* last) {
  if (blocks == 1) return and_fixed<1>(rows, index, count, first, out, last);
  if (blocks == 2) return and_fixed<2>(rows, index, count, first, out, last);
  for (size_t b = 0; b < blocks; ++b) _mm512_store_si512(out + 8 * b, _mm512_load_si512(first + 8 * b));
  for (size_t i = 0; i < count; ++i) {
    const uint64_t* row = rows + index[i] * (8 * blocks);
    __m512i any = _mm512_setzero_si512();
    for (size_t b = 0; b < blocks; ++b) {
      const __m512i both = _mm512_and_si512(_mm512_load_si512(out + 8 * b), _mm512_load_si512(row + 8 * b));
      _mm512_store_si512(out + 8 * b, both);
      any = _mm512_or_si512(any, both);
    }
    if (_mm512_test_epi64_mask(any, any) == 0) {
      *last = i;
      return false;
    }
  }
  return true;
}

struct Lanes {
  __m512i s0;
  __m512i s1;

  explicit Lanes(const RandomLanes* lanes)
      : s0(_mm512_load_si512(lanes->s0)), s1(_mm512_load_si512(lanes->s1)) {}
  void store(RandomLanes* lanes) const {
    _mm512_store_si512(lanes->s0, s0);
    _mm512_store_si512(lanes->s1, s1);
  }
  __m512i draw() {
    const __m512i result = _mm512_add_epi64(_mm512_rol_epi64(_mm512_add_epi64(s0, s1), 17), s0);
    const __m512i mixed = _mm512_xor_si512(s1, s0);
    s0 = _mm512_ternarylogic_epi64(_mm512_rol_epi64(s0, 49), mixed, _mm512_slli_epi64(mixed, 21), 0x96);
    s1 = _mm512_rol_epi64(mixed, 28);
    return result;
  }
};

void bernoulli(RandomLanes* lanes, unsigned threshold, size_t words, uint64_t* out) {
  Lanes random(lanes);
  const __m512i bound = _mm512_set1_epi8(static_cast<char>(threshold));
  const uint64_t always = threshold > 255 ? ~uint64_t{0} : 0;
  for (size_t w = 0; w < words; ++w) out[w] = _mm512_cmplt_epu8_mask(random.draw(), bound) | always;
  random.store(lanes);
}

void bernoulli16(RandomLanes* lanes, unsigned threshold, size_t words, uint64_t* out) {
  Lanes random(lanes);
  const __m512i bound = _mm512_set1_epi16(static_cast<short>(threshold));
  const uint64_t always = threshold > 65535 ? ~uint64_t{0} : 0;
  for (size_t w = 0; w < words; ++w) {
    const __mmask32 low = _mm512_cmplt_epu16_mask(random.draw(), bound);
    const __mmask32 high = _mm512_cmplt_epu16_mask(random.draw(), bound);
    // Joined in the mask registers: GCC 12 can spill a mask that is widened to 64 bits as 32, and load 64.
    out[w] = _mm512_kunpackd(high, low) | always;
  }
  random.store(lanes);
}

bool step_automata(uint8_t* states, const uint64_t* up, const uint64_t* down, size_t words,
                   uint64_t* actions) {
  const __m512i one = _mm512_set1_epi8(1);
  uint64_t changed = 0;
  for (size_t w = 0; w < words; ++w) {
    __m512i state = _mm512_load_si512(states + 64 * w);
    state = _mm512_mask_adds_epu8(state, up[w], state, one);
    state = _mm512_mask_subs_epu8(state, down[w], state, one);
    _mm512_store_si512(states + 64 * w, state);
    const uint64_t action = _mm512_movepi8_mask(state);
    changed |= action ^ actions[w];
    actions[w] = action;
  }
  return changed != 0;
}

constexpr Kernels kTable = {"avx512",  count_bits,  differing_bits, and_rows,
                            bernoulli, bernoulli16, step_automata};

}  // namespace

const Kernels& avx512_kernels() {
  return kTable;
}

}  // namespace bitfed::isa

#endif
