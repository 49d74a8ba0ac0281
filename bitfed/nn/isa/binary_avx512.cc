// AVX-512 with VPOPCNTDQ: a register is a word of sixteen filters.

#include "bitfed/nn/isa/binary_units.h"

#if defined(__AVX512VPOPCNTDQ__)

#include <immintrin.h>

namespace bitfed::isa {
namespace {

// Four patches by kGroups times sixteen filters, all counts in registers.
template <int kGroups>
inline void quad_tile(const SignQuads& q, size_t quad, size_t filter) {
  __m512i counts[4][kGroups];
#pragma GCC unroll 4
  for (int corner = 0; corner < 4; ++corner) {
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) counts[corner][g] = _mm512_setzero_si512();
  }
  const uint32_t* places = q.places + 4 * quad;
  const uint32_t* weights = q.filters + filter;
  for (size_t segment = 0; segment < q.segments; ++segment) {
    const uint32_t* base = q.image + segment * q.segment_step;
    const uint32_t* patches[4] = {base + places[0], base + places[1], base + places[2], base + places[3]};
    for (size_t k = 0; k < q.segment_words; ++k, weights += q.filter_count) {
      __m512i line[kGroups];
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g) line[g] = _mm512_loadu_si512(weights + 16 * g);
#pragma GCC unroll 4
      for (int corner = 0; corner < 4; ++corner) {
        const __m512i word = _mm512_set1_epi32(static_cast<int>(patches[corner][k]));
#pragma GCC unroll 4
        for (int g = 0; g < kGroups; ++g) {
          const __m512i differing = _mm512_popcnt_epi32(_mm512_xor_si512(word, line[g]));
          counts[corner][g] = _mm512_add_epi32(counts[corner][g], differing);
        }
      }
    }
  }
  const uint8_t* cases = q.cases + 4 * quad;
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) {
    const size_t at = filter + 16 * static_cast<size_t>(g);
    __m512i largest = _mm512_set1_epi32(INT32_MIN);
#pragma GCC unroll 4
    for (int corner = 0; corner < 4; ++corner) {
      const __m512i base = _mm512_loadu_si512(q.bases + cases[corner] * q.filter_count + at);
      const __m512i twice = _mm512_slli_epi32(counts[corner][g], 1);
      largest = _mm512_max_epi32(largest, _mm512_sub_epi32(base, twice));
    }
    const __m512 product = _mm512_mul_ps(_mm512_cvtepi32_ps(largest), _mm512_loadu_ps(q.factor + at));
    const __m512 x = _mm512_add_ps(product, _mm512_loadu_ps(q.offset + at));
    const __m512 clipped = _mm512_max_ps(_mm512_min_ps(x, _mm512_set1_ps(1.0f)), _mm512_set1_ps(-1.0f));
    _mm512_storeu_ps(q.out + quad * q.filter_count + at, clipped);
  }
}

void sign_quads(const SignQuads& q) {
  for (size_t quad = 0; quad < q.quads; ++quad) {
    size_t filter = 0;
    for (; filter + 64 <= q.filter_count; filter += 64) quad_tile<4>(q, quad, filter);
    for (; filter < q.filter_count; filter += 16) quad_tile<1>(q, quad, filter);
  }
}

double exact_sum(const float* values, size_t count) {
  __m512d low = _mm512_setzero_pd();
  __m512d high = _mm512_setzero_pd();
  for (size_t i = 0; i < count; i += 16) {
    low = _mm512_add_pd(low, _mm512_cvtps_pd(_mm256_loadu_ps(values + i)));
    high = _mm512_add_pd(high, _mm512_cvtps_pd(_mm256_loadu_ps(values + i + 8)));
  }
  return _mm512_reduce_add_pd(_mm512_add_pd(low, high));
}

void signs_about(const float* values, size_t pixels, size_t channels, float mean, uint32_t* words) {
  const __m512 about = _mm512_set1_ps(mean);
  for (size_t pixel = 0; pixel < pixels; ++pixel) {
    for (size_t first = 0; first < channels; first += 32) {
      uint32_t word = _mm512_cmp_ps_mask(_mm512_loadu_ps(values), about, _CMP_GE_OQ);
      values += 16;
      if (first + 16 < channels) {
        word |= uint32_t{_mm512_cmp_ps_mask(_mm512_loadu_ps(values), about, _CMP_GE_OQ)} << 16;
        values += 16;
      }
      *words++ = word;
    }
  }
}

}  // namespace

const BinaryKernels& avx512_binary_kernels() {
  static constexpr BinaryKernels kTable = {"avx512", sign_quads, exact_sum, signs_about};
  return kTable;
}

}  // namespace bitfed::isa

#endif
