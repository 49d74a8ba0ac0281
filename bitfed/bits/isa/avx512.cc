// AVX-512 with BW, VL, DQ and VPOPCNTDQ (and VNNI, for neural networks): Ice Lake, Zen 4 and later.

#include "bitfed/bits/isa/match_clauses.h"
#include "bitfed/bits/isa/units.h"

#if defined(__AVX512BW__)

#include <immintrin.h>

namespace bitfed::isa {
namespace {

// Of the last load of fewer than eight words; masked words are not read.
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

double squared_distance(const double* a, const double* b, size_t count) {
  __m512d sum = _mm512_setzero_pd();
  for (size_t i = 0; i < count; i += 8) {
    const __mmask8 mask = count - i >= 8 ? 0xff : tail_mask(count - i);
    const __m512d difference =
        _mm512_sub_pd(_mm512_maskz_loadu_pd(mask, a + i), _mm512_maskz_loadu_pd(mask, b + i));
    sum = _mm512_add_pd(sum, _mm512_mul_pd(difference, difference));
  }
  const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(sum), _mm512_extractf64x4_pd(sum, 1));
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

size_t select_bit(const uint64_t* words, size_t rank) {
  size_t index = 0;
  for (;; ++index) {
    const auto count = static_cast<size_t>(_mm_popcnt_u64(words[index]));
    if (rank < count) break;
    rank -= count;
  }
  // Deposits one bit at the position of the wanted set bit.
  return 64 * index + _tzcnt_u64(_pdep_u64(uint64_t{1} << rank, words[index]));
}

struct Block {
  __m512i bits;

  static Block zero() { return {_mm512_setzero_si512()}; }
  static Block load(const uint64_t* from) { return {_mm512_load_si512(from)}; }
  void store(uint64_t* to) const { _mm512_store_si512(to, bits); }
  Block operator&(Block other) const { return {_mm512_and_si512(bits, other.bits)}; }
  Block operator|(Block other) const { return {_mm512_or_si512(bits, other.bits)}; }
  bool is_set() const { return _mm512_test_epi64_mask(bits, bits) != 0; }
};

int64_t sum_chosen(const int32_t* values, const uint64_t* chosen, size_t count) {
  __m512i sum = _mm512_setzero_si512();
  for (size_t i = 0; i < count; i += 8) {
    const auto mask = static_cast<__mmask8>(chosen[i / 64] >> (i % 64));
    sum =
        _mm512_add_epi64(sum, _mm512_maskz_cvtepi32_epi64(mask, _mm256_maskz_loadu_epi32(mask, values + i)));
  }
  return _mm512_reduce_add_epi64(sum);
}

void add_chosen(int64_t value, const uint64_t* chosen, size_t blocks, int64_t* sums) {
  const __m512i addend = _mm512_set1_epi64(value);
  for (size_t w = 0; w < 8 * blocks; ++w) {
    const uint64_t word = chosen[w];
    if (word == 0) continue;  // most words: few samples match a clause
    for (size_t part = 0; part < 8; ++part) {
      int64_t* at = sums + 64 * w + 8 * part;
      const __m512i old = _mm512_load_si512(at);
      const auto mask = static_cast<__mmask8>(word >> (8 * part));
      _mm512_store_si512(at, _mm512_mask_add_epi64(old, mask, old, addend));
    }
  }
}

// Loads begin at the byte of bit `from`, so that shifts are below 8 bits; a second load, one word on, has the
// bits that a right shift leaves empty.
void split_window(const uint64_t* strip, size_t from, const uint64_t* valid, size_t blocks, uint64_t* holds,
                  uint64_t* fails) {
  const auto* source = reinterpret_cast<const uint8_t*>(strip) + from / 8;
  const __m128i right = _mm_cvtsi64_si128(static_cast<long long>(from % 8));
  const __m128i left = _mm_cvtsi64_si128(static_cast<long long>(64 - from % 8));  // a shift by 64 gives 0
  for (size_t b = 0; b < blocks; ++b) {
    const __m512i low = _mm512_srl_epi64(_mm512_loadu_si512(source + 64 * b), right);
    const __m512i high = _mm512_sll_epi64(_mm512_loadu_si512(source + 64 * b + 8), left);
    const __m512i bits = _mm512_or_si512(low, high);
    const __m512i within = _mm512_load_si512(valid + 8 * b);
    _mm512_store_si512(holds + 8 * b, _mm512_and_si512(bits, within));
    _mm512_store_si512(fails + 8 * b, _mm512_andnot_si512(bits, within));
  }
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
  __m512i draw() {  // ternary logic 0x96: the XOR of all three
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
  const uint64_t always = threshold > 255 ? ~uint64_t{0} : 0;  // 256 does not fit a byte
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

bool step_automata(uint8_t* states, const uint64_t* up, const uint64_t* down, size_t words, uint64_t* actions,
                   uint64_t* changes) {
  const __m512i one = _mm512_set1_epi8(1);
  uint64_t changed = 0;
  for (size_t w = 0; w < words; ++w) {
    __m512i state = _mm512_load_si512(states + 64 * w);
    state = _mm512_mask_adds_epu8(state, up[w], state, one);
    state = _mm512_mask_subs_epu8(state, down[w], state, one);
    _mm512_store_si512(states + 64 * w, state);
    const uint64_t action = _mm512_movepi8_mask(state);
    changes[w] = action ^ actions[w];
    changed |= changes[w];
    actions[w] = action;
  }
  return changed != 0;
}

constexpr Kernels table(InstructionSet instruction_set, const char* name) {
  return {instruction_set,      name,       count_bits, differing_bits, squared_distance, select_bit,
          match_clauses<Block>, sum_chosen, add_chosen, split_window,   bernoulli,        bernoulli16,
          step_automata};
}

}  // namespace

const Kernels& avx512_kernels() {
  static constexpr Kernels kTable = table(InstructionSet::kAvx512, "avx512");
  return kTable;
}

const Kernels& amx_kernels() {
  static constexpr Kernels kTable = table(InstructionSet::kAmx, "amx");
  return kTable;
}

}  // namespace bitfed::isa

#endif
