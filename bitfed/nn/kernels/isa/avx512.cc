// AVX-512 with VNNI: sixteen floats are one register.

#include "bitfed/nn/kernels/isa/units.h"

#if defined(__AVX512F__) && defined(__AVX512VNNI__)

#include <immintrin.h>

namespace bitfed::isa {
namespace {

struct Lanes {
  __m512 v;
};

inline Lanes load(const float* p) {
  return {_mm512_load_ps(p)};
}
inline void store(float* p, Lanes x) {
  _mm512_store_ps(p, x.v);
}
inline void stream(float* p, Lanes x) {
  _mm512_stream_ps(p, x.v);
}
inline Lanes all(float value) {
  return {_mm512_set1_ps(value)};
}
inline Lanes operator+(Lanes a, Lanes b) {
  return {_mm512_add_ps(a.v, b.v)};
}
inline Lanes operator-(Lanes a, Lanes b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
inline Lanes operator*(Lanes a, Lanes b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
inline Lanes operator/(Lanes a, Lanes b) {
  return {_mm512_div_ps(a.v, b.v)};
}
inline Lanes fma(Lanes a, Lanes b, Lanes c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
inline Lanes root(Lanes x) {
  return {_mm512_sqrt_ps(x.v)};
}
inline Lanes larger(Lanes a, Lanes b) {
  return {_mm512_max_ps(a.v, b.v)};
}
inline Lanes smaller(Lanes a, Lanes b) {
  return {_mm512_min_ps(a.v, b.v)};
}
inline Lanes where_at_least(Lanes a, Lanes b, Lanes x, Lanes y) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_GE_OQ), y.v, x.v)};
}
inline Lanes add_exponent(Lanes x, Lanes shifted) {
  const __m512i n = _mm512_slli_epi32(_mm512_castps_si512(shifted.v), 23);
  return {_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(x.v), n))};
}
inline __m128 quarter_sum(__m512 v) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  return _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
}
inline float sum_of(Lanes x) {
  const __m128 four = quarter_sum(x.v);
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
inline uint32_t nonzeros_of(Lanes x) {
  return _mm512_cmp_ps_mask(x.v, _mm512_setzero_ps(), _CMP_NEQ_UQ);
}
inline size_t list_nonzeros_of(Lanes x, const uint32_t* offsets, float* values, uint32_t* found) {
  const __mmask16 mask = _mm512_cmp_ps_mask(x.v, _mm512_setzero_ps(), _CMP_NEQ_UQ);
  _mm512_storeu_ps(values, _mm512_maskz_compress_ps(mask, x.v));
  _mm512_storeu_si512(found, _mm512_maskz_compress_epi32(mask, _mm512_loadu_si512(offsets)));
  return static_cast<size_t>(__builtin_popcount(mask));
}
inline Lanes where_below(const uint32_t* draws, uint32_t bound, Lanes x, Lanes y) {
  const __mmask16 below =
      _mm512_cmplt_epu32_mask(_mm512_loadu_si512(draws), _mm512_set1_epi32(static_cast<int>(bound)));
  return {_mm512_mask_blend_ps(below, y.v, x.v)};
}
inline float largest_of(Lanes x) {
  return _mm512_reduce_max_ps(x.v);
}

typedef uint64_t Words __attribute__((vector_size(64)));
constexpr size_t kWords = 8;

inline Words low_products(Words x, uint32_t factor) {
  return reinterpret_cast<Words>(_mm512_mul_epu32(reinterpret_cast<__m512i>(x), _mm512_set1_epi64(factor)));
}
inline void store_words(uint32_t* p, Words x, Words y) {
  const __m512i even = reinterpret_cast<__m512i>(x);
  const __m512i odd = reinterpret_cast<__m512i>(y);
  const __m512i first = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
  const __m512i last = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
  _mm512_storeu_si512(p, _mm512_permutex2var_epi64(even, first, odd));
  _mm512_storeu_si512(p + kLanes, _mm512_permutex2var_epi64(even, last, odd));
}

struct Doubles {
  __m512d low, high;
};

inline Doubles no_doubles() {
  return {_mm512_setzero_pd(), _mm512_setzero_pd()};
}
inline Doubles add(Doubles sums, Lanes x) {
  return {_mm512_add_pd(sums.low, _mm512_cvtps_pd(_mm512_castps512_ps256(x.v))),
          _mm512_add_pd(sums.high, _mm512_cvtps_pd(_mm512_extractf32x8_ps(x.v, 1)))};
}
inline double sum_of(Doubles sums) {
  const __m512d eight = _mm512_add_pd(sums.low, sums.high);
  const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

struct Pairs {
  __m512i v;
};

inline Pairs no_sums() {
  return {_mm512_setzero_si512()};
}
inline Pairs load_sums(const int32_t* p) {
  return {_mm512_loadu_si512(p)};
}
inline void store_sums(int32_t* p, Pairs sums) {
  _mm512_storeu_si512(p, sums.v);
}
inline Pairs load_pairs(const int16_t* p) {
  return {_mm512_loadu_si512(p)};
}
inline Pairs all_pairs(const int16_t* p) {
  int pair;
  __builtin_memcpy(&pair, p, sizeof(pair));
  return {_mm512_set1_epi32(pair)};
}
inline Pairs paired(const int16_t* even, const int16_t* odd) {
  const __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(even)));
  const __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(odd)));
  return {_mm512_or_si512(low, _mm512_slli_epi32(high, 16))};
}
inline void store_pairs(int16_t* p, Pairs x) {
  _mm512_storeu_si512(p, x.v);
}
inline Pairs signs_of(Pairs x) {
  return {_mm512_or_si512(_mm512_srai_epi16(x.v, 15), _mm512_set1_epi16(1))};
}
inline size_t transpose_four(const int16_t* from, size_t columns, int16_t* to, size_t to_step) {
  size_t column = 0;
  for (; column + 2 * kLanes <= columns; column += 2 * kLanes) {
    const auto row = [&](size_t r) { return signs_of(load_pairs(from + r * columns + column)).v; };
    const __m512i ab_low = _mm512_unpacklo_epi32(row(0), row(1));
    const __m512i ab_high = _mm512_unpackhi_epi32(row(0), row(1));
    const __m512i cd_low = _mm512_unpacklo_epi32(row(2), row(3));
    const __m512i cd_high = _mm512_unpackhi_epi32(row(2), row(3));
    // Every fourth pair.
    const auto put = [&](size_t first, __m512i x) {
      const auto at = [&](size_t i) {
        return reinterpret_cast<__m128i*>(to + (column / 2 + first + 4 * i) * to_step);
      };
      _mm_storeu_si128(at(0), _mm512_castsi512_si128(x));
      _mm_storeu_si128(at(1), _mm512_extracti32x4_epi32(x, 1));
      _mm_storeu_si128(at(2), _mm512_extracti32x4_epi32(x, 2));
      _mm_storeu_si128(at(3), _mm512_extracti32x4_epi32(x, 3));
    };
    put(0, _mm512_unpacklo_epi64(ab_low, cd_low));
    put(1, _mm512_unpackhi_epi64(ab_low, cd_low));
    put(2, _mm512_unpacklo_epi64(ab_high, cd_high));
    put(3, _mm512_unpackhi_epi64(ab_high, cd_high));
  }
  return column;
}
inline Pairs dot(Pairs sums, Pairs a, Pairs b) {
  // Not the intrinsic: GCC 12 copies its sums from register to register and spills them, at twice the time.
  asm("vpdpwssd %2, %1, %0" : "+v"(sums.v) : "v"(a.v), "v"(b.v));
  return sums;
}
inline Lanes floats_of(Pairs sums) {
  return {_mm512_cvtepi32_ps(sums.v)};
}
inline void store_rounded(int16_t* p, Lanes x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(x.v)));
}
inline void store_rounded(int16_t* p, Lanes even, Lanes odd) {
  const __m512i high = _mm512_slli_epi32(_mm512_cvtps_epi32(odd.v), 16);
  _mm512_storeu_si512(p, _mm512_mask_blend_epi16(0xAAAAAAAA, _mm512_cvtps_epi32(even.v), high));
}

// 16 to 32 registers of sums: enough to hide the latency of a multiply-add on two ports.
constexpr int kWideRows = 4;
constexpr int kGatheredWideRows = 6;
constexpr int kWideVectors = 4;
constexpr int kPairRows = 8;
constexpr int kSingleRows = 16;
constexpr int kSparseVectors = 8;
constexpr int kColumnBlocks = 4;

#include "bitfed/nn/kernels/isa/loops.h"

}  // namespace

const NeuralKernels& avx512_neural_kernels() {
  static constexpr NeuralKernels kTable = table("avx512");
  return kTable;
}

}  // namespace bitfed::isa

#endif
