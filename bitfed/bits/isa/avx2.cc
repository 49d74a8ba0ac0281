// AVX2 with BMI2 and POPCNT: Haswell, Zen and later. A block is two registers.

#include "bitfed/bits/isa/match_clauses.h"
#include "bitfed/bits/isa/units.h"

#if defined(__AVX2__)

#include <immintrin.h>

namespace bitfed::isa {
namespace {

__m256i load(const void* from) {
  return _mm256_load_si256(static_cast<const __m256i*>(from));
}
__m256i load_unaligned(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
void store(void* to, __m256i value) {
  _mm256_store_si256(static_cast<__m256i*>(to), value);
}

// Set bits of each 64-bit lane: two table look-ups of four bits per byte (Mula, Kurz and Lemire, "Faster
// population counts using AVX2 instructions", 2018).
__m256i count_lanes(__m256i x) {
  const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,  //
                                         0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
  const __m256i nibble = _mm256_set1_epi8(15);
  const __m256i low = _mm256_shuffle_epi8(table, _mm256_and_si256(x, nibble));
  const __m256i high = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(x, 4), nibble));
  return _mm256_sad_epu8(_mm256_add_epi8(low, high), _mm256_setzero_si256());
}

size_t add_lanes(__m256i x) {
  const __m128i pair = _mm_add_epi64(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  return static_cast<size_t>(_mm_cvtsi128_si64(pair) + _mm_extract_epi64(pair, 1));
}

size_t count_bits(const uint64_t* a, size_t words) {
  __m256i sum = _mm256_setzero_si256();
  size_t i = 0;
  for (; i + 4 <= words; i += 4) sum = _mm256_add_epi64(sum, count_lanes(load_unaligned(a + i)));
  size_t count = add_lanes(sum);
  for (; i < words; ++i) count += static_cast<size_t>(_mm_popcnt_u64(a[i]));
  return count;
}

size_t differing_bits(const uint64_t* a, const uint64_t* b, size_t words) {
  __m256i sum = _mm256_setzero_si256();
  size_t i = 0;
  for (; i + 4 <= words; i += 4) {
    const __m256i x = _mm256_xor_si256(load_unaligned(a + i), load_unaligned(b + i));
    sum = _mm256_add_epi64(sum, count_lanes(x));
  }
  size_t count = add_lanes(sum);
  for (; i < words; ++i) count += static_cast<size_t>(_mm_popcnt_u64(a[i] ^ b[i]));
  return count;
}

double squared_distance(const double* a, const double* b, size_t count) {
  __m256d low = _mm256_setzero_pd();
  __m256d high = _mm256_setzero_pd();
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256d first = _mm256_sub_pd(_mm256_loadu_pd(a + i), _mm256_loadu_pd(b + i));
    const __m256d second = _mm256_sub_pd(_mm256_loadu_pd(a + i + 4), _mm256_loadu_pd(b + i + 4));
    low = _mm256_add_pd(low, _mm256_mul_pd(first, first));
    high = _mm256_add_pd(high, _mm256_mul_pd(second, second));
  }
  alignas(32) double sums[8];
  _mm256_store_pd(sums, low);
  _mm256_store_pd(sums + 4, high);
  for (size_t lane = 0; i < count; ++i, ++lane) sums[lane] += (a[i] - b[i]) * (a[i] - b[i]);
  for (size_t half = 4; half > 0; half /= 2) {
    for (size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  }
  return sums[0];
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
  __m256i low;
  __m256i high;

  static Block zero() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  static Block load(const uint64_t* from) { return {isa::load(from), isa::load(from + 4)}; }
  void store(uint64_t* to) const {
    isa::store(to, low);
    isa::store(to + 4, high);
  }
  Block operator&(Block other) const {
    return {_mm256_and_si256(low, other.low), _mm256_and_si256(high, other.high)};
  }
  Block operator|(Block other) const {
    return {_mm256_or_si256(low, other.low), _mm256_or_si256(high, other.high)};
  }
  bool is_set() const {
    const __m256i both = _mm256_or_si256(low, high);
    return _mm256_testz_si256(both, both) == 0;
  }
};

// Eight bits to eight lanes of all ones or all zeros.
__m256i lanes_where(uint64_t bits) {
  const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(static_cast<int>(bits & 255)), bit), bit);
}

// Masked lanes are not read, so that the last group may extend beyond `values`.
int64_t sum_chosen(const int32_t* values, const uint64_t* chosen, size_t count) {
  __m256i sum = _mm256_setzero_si256();
  for (size_t i = 0; i < count; i += 8) {
    const __m256i kept = _mm256_maskload_epi32(values + i, lanes_where(chosen[i / 64] >> (i % 64)));
    sum = _mm256_add_epi64(sum, _mm256_cvtepi32_epi64(_mm256_castsi256_si128(kept)));
    sum = _mm256_add_epi64(sum, _mm256_cvtepi32_epi64(_mm256_extracti128_si256(kept, 1)));
  }
  return static_cast<int64_t>(add_lanes(sum));
}

void add_chosen(int64_t value, const uint64_t* chosen, size_t blocks, int64_t* sums) {
  const __m256i addend = _mm256_set1_epi64x(value);
  const __m256i bit = _mm256_setr_epi64x(1, 2, 4, 8);
  for (size_t w = 0; w < 8 * blocks; ++w) {
    const uint64_t word = chosen[w];
    if (word == 0) continue;  // most words: few samples match a clause
    for (size_t part = 0; part < 16; ++part) {
      int64_t* at = sums + 64 * w + 4 * part;
      const __m256i bits = _mm256_set1_epi64x(static_cast<long long>(word >> (4 * part)));
      const __m256i mask = _mm256_cmpeq_epi64(_mm256_and_si256(bits, bit), bit);
      store(at, _mm256_add_epi64(load(at), _mm256_and_si256(addend, mask)));
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
  for (size_t w = 0; w < 8 * blocks; w += 4) {
    const __m256i low = _mm256_srl_epi64(load_unaligned(source + 8 * w), right);
    const __m256i high = _mm256_sll_epi64(load_unaligned(source + 8 * w + 8), left);
    const __m256i bits = _mm256_or_si256(low, high);
    const __m256i within = load(valid + w);
    store(holds + w, _mm256_and_si256(bits, within));
    store(fails + w, _mm256_andnot_si256(bits, within));
  }
}

template <int kBy>
__m256i rotate(__m256i x) {
  return _mm256_or_si256(_mm256_slli_epi64(x, kBy), _mm256_srli_epi64(x, 64 - kBy));
}

// Four of the eight generators.
struct HalfLanes {
  __m256i s0;
  __m256i s1;

  __m256i draw() {
    const __m256i result = _mm256_add_epi64(rotate<17>(_mm256_add_epi64(s0, s1)), s0);
    const __m256i mixed = _mm256_xor_si256(s1, s0);
    s0 = _mm256_xor_si256(_mm256_xor_si256(rotate<49>(s0), mixed), _mm256_slli_epi64(mixed, 21));
    s1 = rotate<28>(mixed);
    return result;
  }
};

struct Lanes {
  HalfLanes low;
  HalfLanes high;

  explicit Lanes(const RandomLanes* lanes)
      : low{load(lanes->s0), load(lanes->s1)}, high{load(lanes->s0 + 4), load(lanes->s1 + 4)} {}
  void store_to(RandomLanes* lanes) const {
    store(lanes->s0, low.s0);
    store(lanes->s1, low.s1);
    store(lanes->s0 + 4, high.s0);
    store(lanes->s1 + 4, high.s1);
  }
};

// There is no unsigned comparison: with the top bits flipped the signed one gives the same order.
__m256i less_8(__m256i x, __m256i flipped_bound) {
  return _mm256_cmpgt_epi8(flipped_bound, _mm256_xor_si256(x, _mm256_set1_epi8(-128)));
}

__m256i less_16(__m256i x, __m256i flipped_bound) {
  return _mm256_cmpgt_epi16(flipped_bound, _mm256_xor_si256(x, _mm256_set1_epi16(-32768)));
}

uint64_t top_bits(__m256i x) {
  return static_cast<uint32_t>(_mm256_movemask_epi8(x));
}

void bernoulli(RandomLanes* lanes, unsigned threshold, size_t words, uint64_t* out) {
  Lanes random(lanes);
  const __m256i bound = _mm256_set1_epi8(static_cast<char>(threshold ^ 0x80u));
  const uint64_t always = threshold > 255 ? ~uint64_t{0} : 0;  // 256 does not fit a byte
  for (size_t w = 0; w < words; ++w) {
    const uint64_t low = top_bits(less_8(random.low.draw(), bound));
    const uint64_t high = top_bits(less_8(random.high.draw(), bound));
    out[w] = low | high << 32 | always;
  }
  random.store_to(lanes);
}

// 32 bits from one draw of all lanes, 16 random bits each.
uint64_t draw_16(Lanes* random, __m256i bound) {
  const __m256i low = less_16(random->low.draw(), bound);
  const __m256i high = less_16(random->high.draw(), bound);
  // Packing works within 128-bit halves; the permutation puts its quarters back in order.
  return top_bits(_mm256_permute4x64_epi64(_mm256_packs_epi16(low, high), 0xd8));
}

void bernoulli16(RandomLanes* lanes, unsigned threshold, size_t words, uint64_t* out) {
  Lanes random(lanes);
  const __m256i bound = _mm256_set1_epi16(static_cast<short>(threshold ^ 0x8000u));
  const uint64_t always = threshold > 65535 ? ~uint64_t{0} : 0;
  for (size_t w = 0; w < words; ++w) {
    const uint64_t low = draw_16(&random, bound);
    const uint64_t high = draw_16(&random, bound);
    out[w] = low | high << 32 | always;
  }
  random.store_to(lanes);
}

// 32 mask bits to 32 bytes of 0 or 1: every byte gets the mask's byte that holds its bit, then keeps only
// that bit.
__m256i ones_where(uint32_t mask) {
  const __m256i source = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,  //
                                          2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
  const __m256i bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201u));
  const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(mask)), source);
  return _mm256_min_epu8(_mm256_and_si256(bytes, bit), _mm256_set1_epi8(1));
}

// Updates 32 automata and returns their actions.
uint64_t step_half(uint8_t* states, uint32_t up, uint32_t down) {
  const __m256i risen = _mm256_adds_epu8(load(states), ones_where(up));
  const __m256i state = _mm256_subs_epu8(risen, ones_where(down));
  store(states, state);
  return top_bits(state);
}

bool step_automata(uint8_t* states, const uint64_t* up, const uint64_t* down, size_t words, uint64_t* actions,
                   uint64_t* changes) {
  uint64_t changed = 0;
  for (size_t w = 0; w < words; ++w) {
    uint8_t* block = states + 64 * w;
    const uint64_t low = step_half(block, static_cast<uint32_t>(up[w]), static_cast<uint32_t>(down[w]));
    const uint64_t high =
        step_half(block + 32, static_cast<uint32_t>(up[w] >> 32), static_cast<uint32_t>(down[w] >> 32));
    const uint64_t action = low | high << 32;
    changes[w] = action ^ actions[w];
    changed |= changes[w];
    actions[w] = action;
  }
  return changed != 0;
}

constexpr Kernels table(InstructionSet set, const char* name) {
  return {set,
          name,
          count_bits,
          differing_bits,
          squared_distance,
          select_bit,
          match_clauses<Block>,
          sum_chosen,
          add_chosen,
          split_window,
          bernoulli,
          bernoulli16,
          step_automata};
}

}  // namespace

const Kernels& avx2_kernels() {
  static constexpr Kernels kTable = table(InstructionSet::kAvx2, "avx2");
  return kTable;
}

const Kernels& vnni_kernels() {
  static constexpr Kernels kTable = table(InstructionSet::kVnni, "vnni");
  return kTable;
}

}  // namespace bitfed::isa

#endif
