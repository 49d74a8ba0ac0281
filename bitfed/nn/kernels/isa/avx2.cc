// AVX2 with FMA: sixteen floats are two registers.

#include "bitfed/nn/kernels/isa/units.h"

#if defined(__AVX2__) && defined(__FMA__)

#include <immintrin.h>

namespace bitfed::isa {
namespace {

struct Lanes {
  __m256 a, b;
};

inline Lanes load(const float* p) {
  return {_mm256_load_ps(p), _mm256_load_ps(p + 8)};
}
inline void store(float* p, Lanes x) {
  _mm256_store_ps(p, x.a);
  _mm256_store_ps(p + 8, x.b);
}
inline void stream(float* p, Lanes x) {
  _mm256_stream_ps(p, x.a);
  _mm256_stream_ps(p + 8, x.b);
}
inline Lanes all(float value) {
  return {_mm256_set1_ps(value), _mm256_set1_ps(value)};
}
inline Lanes operator+(Lanes x, Lanes y) {
  return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
}
inline Lanes operator-(Lanes x, Lanes y) {
  return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
}
inline Lanes operator*(Lanes x, Lanes y) {
  return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
}
inline Lanes operator/(Lanes x, Lanes y) {
  return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)};
}
inline Lanes fma(Lanes x, Lanes y, Lanes z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
inline Lanes root(Lanes x) {
  return {_mm256_sqrt_ps(x.a), _mm256_sqrt_ps(x.b)};
}
inline Lanes larger(Lanes x, Lanes y) {
  return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)};
}
inline Lanes smaller(Lanes x, Lanes y) {
  return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)};
}
inline Lanes where_at_least(Lanes a, Lanes b, Lanes x, Lanes y) {
  return {_mm256_blendv_ps(y.a, x.a, _mm256_cmp_ps(a.a, b.a, _CMP_GE_OQ)),
          _mm256_blendv_ps(y.b, x.b, _mm256_cmp_ps(a.b, b.b, _CMP_GE_OQ))};
}
inline __m256 add_exponent(__m256 x, __m256 shifted) {
  const __m256i n = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x), n));
}
inline Lanes add_exponent(Lanes x, Lanes shifted) {
  return {add_exponent(x.a, shifted.a), add_exponent(x.b, shifted.b)};
}
inline float sum_of(Lanes x) {
  const __m256 eight = _mm256_add_ps(x.a, x.b);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
inline uint32_t nonzeros_of(Lanes x) {
  const auto mask = [](__m256 eight) {
    return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(eight, _mm256_setzero_ps(), _CMP_NEQ_UQ)));
  };
  return mask(x.a) | mask(x.b) << 8;
}
// Of every mask of eight lanes: its lanes in their order.
struct LanesOfMasks {
  uint8_t lanes[256][8];
};
constexpr LanesOfMasks lanes_of_masks() {
  LanesOfMasks all{};
  for (unsigned mask = 0; mask < 256; ++mask) {
    unsigned found = 0;
    for (uint8_t lane = 0; lane < 8; ++lane) {
      if ((mask >> lane & 1) != 0) all.lanes[mask][found++] = lane;
    }
  }
  return all;
}
constexpr LanesOfMasks kLanesOfMasks = lanes_of_masks();

inline size_t list_nonzeros_of(Lanes x, const uint32_t* offsets, float* values, uint32_t* found) {
  const uint32_t masks = nonzeros_of(x);
  const auto put = [&](__m256 eight, const uint32_t* at, uint32_t mask) {
    const __m128i lanes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kLanesOfMasks.lanes[mask]));
    const __m256i order = _mm256_cvtepu8_epi32(lanes);
    const __m256i of_eight = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
    _mm256_storeu_ps(values, _mm256_permutevar8x32_ps(eight, order));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(found), _mm256_permutevar8x32_epi32(of_eight, order));
    values += __builtin_popcount(mask);
    found += __builtin_popcount(mask);
  };
  put(x.a, offsets, masks & 255);
  put(x.b, offsets + 8, masks >> 8);
  return static_cast<size_t>(__builtin_popcount(masks));
}
inline Lanes where_below(const uint32_t* draws, uint32_t bound, Lanes x, Lanes y) {
  const auto eight = [&](const uint32_t* at, __m256 p, __m256 q) {
    const __m256i of_eight = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
    const __m256i larger = _mm256_max_epu32(of_eight, _mm256_set1_epi32(static_cast<int>(bound)));
    return _mm256_blendv_ps(p, q, _mm256_castsi256_ps(_mm256_cmpeq_epi32(larger, of_eight)));
  };
  return {eight(draws, x.a, y.a), eight(draws + 8, x.b, y.b)};
}
inline float largest_of(Lanes x) {
  const __m256 eight = _mm256_max_ps(x.a, x.b);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

typedef uint64_t Words __attribute__((vector_size(32)));
constexpr size_t kWords = 4;

inline Words low_products(Words x, uint32_t factor) {
  return reinterpret_cast<Words>(_mm256_mul_epu32(reinterpret_cast<__m256i>(x), _mm256_set1_epi64x(factor)));
}
inline void store_words(uint32_t* p, Words x, Words y) {
  const __m256i low = _mm256_unpacklo_epi64(reinterpret_cast<__m256i>(x), reinterpret_cast<__m256i>(y));
  const __m256i high = _mm256_unpackhi_epi64(reinterpret_cast<__m256i>(x), reinterpret_cast<__m256i>(y));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute2x128_si256(low, high, 0x20));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), _mm256_permute2x128_si256(low, high, 0x31));
}

struct Doubles {
  __m256d a, b, c, d;
};

inline Doubles no_doubles() {
  return {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()};
}
inline Doubles add(Doubles sums, Lanes x) {
  return {_mm256_add_pd(sums.a, _mm256_cvtps_pd(_mm256_castps256_ps128(x.a))),
          _mm256_add_pd(sums.b, _mm256_cvtps_pd(_mm256_extractf128_ps(x.a, 1))),
          _mm256_add_pd(sums.c, _mm256_cvtps_pd(_mm256_castps256_ps128(x.b))),
          _mm256_add_pd(sums.d, _mm256_cvtps_pd(_mm256_extractf128_ps(x.b, 1)))};
}
inline double sum_of(Doubles sums) {
  const __m256d four = _mm256_add_pd(_mm256_add_pd(sums.a, sums.c), _mm256_add_pd(sums.b, sums.d));
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

struct Pairs {
  __m256i a, b;
};

inline Pairs no_sums() {
  return {_mm256_setzero_si256(), _mm256_setzero_si256()};
}
inline Pairs load_sums(const int32_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 8))};
}
inline void store_sums(int32_t* p, Pairs sums) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), sums.a);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), sums.b);
}
inline Pairs load_pairs(const int16_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 16))};
}
inline Pairs all_pairs(const int16_t* p) {
  int pair;
  __builtin_memcpy(&pair, p, sizeof(pair));
  return {_mm256_set1_epi32(pair), _mm256_set1_epi32(pair)};
}
inline Pairs paired(const int16_t* even, const int16_t* odd) {
  const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(even));
  const __m256i y = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(odd));
  const __m256i low = _mm256_unpacklo_epi16(x, y);
  const __m256i high = _mm256_unpackhi_epi16(x, y);
  return {_mm256_permute2x128_si256(low, high, 0x20), _mm256_permute2x128_si256(low, high, 0x31)};
}
inline void store_pairs(int16_t* p, Pairs x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x.a);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 16), x.b);
}
inline Pairs signs_of(Pairs x) {
  const __m256i one = _mm256_set1_epi16(1);
  return {_mm256_or_si256(_mm256_srai_epi16(x.a, 15), one), _mm256_or_si256(_mm256_srai_epi16(x.b, 15), one)};
}
inline size_t transpose_four(const int16_t* /*from*/, size_t /*columns*/, int16_t* /*to*/,
                             size_t /*to_step*/) {
  return 0;
}
inline Pairs dot(Pairs sums, Pairs x, Pairs y) {
  return {_mm256_add_epi32(sums.a, _mm256_madd_epi16(x.a, y.a)),
          _mm256_add_epi32(sums.b, _mm256_madd_epi16(x.b, y.b))};
}
inline Lanes floats_of(Pairs sums) {
  return {_mm256_cvtepi32_ps(sums.a), _mm256_cvtepi32_ps(sums.b)};
}
inline void store_rounded(int16_t* p, Lanes x) {
  const __m256i packed = _mm256_packs_epi32(_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xD8));
}
inline __m256i paired(__m256 even, __m256 odd) {
  return _mm256_blend_epi16(_mm256_cvtps_epi32(even), _mm256_slli_epi32(_mm256_cvtps_epi32(odd), 16), 0xAA);
}
inline void store_rounded(int16_t* p, Lanes even, Lanes odd) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), paired(even.a, odd.a));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 16), paired(even.b, odd.b));
}

// 12 of the 16 registers for sums.
constexpr int kWideRows = 1;
constexpr int kGatheredWideRows = 1;
constexpr int kWideVectors = 0;
constexpr int kPairRows = 3;
constexpr int kSingleRows = 6;
constexpr int kSparseVectors = 6;
constexpr int kColumnBlocks = 2;

#include "bitfed/nn/kernels/isa/loops.h"

}  // namespace

const NeuralKernels& avx2_neural_kernels() {
  static constexpr NeuralKernels kTable = table("avx2");
  return kTable;
}

}  // namespace bitfed::isa

#endif
