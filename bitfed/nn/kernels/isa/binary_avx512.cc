// AVX-512 with VPOPCNTDQ: a register is a word of sixteen filters.

#include "bitfed/nn/kernels/isa/binary_units.h"

#if defined(__AVX512VPOPCNTDQ__)

#include <immintrin.h>

namespace bitfed::isa {
namespace {

using Sums = __m512i;
using Values = __m512;

inline Sums load_sums(const int32_t* from) {
  return _mm512_loadu_si512(from);
}
inline Sums larger(Sums a, Sums b) {
  return _mm512_max_epi32(a, b);
}
inline uint32_t bits_at_least(Sums sums, Sums min) {
  return _mm512_cmpge_epi32_mask(sums, min);
}
inline Values values_of(Sums sums) {
  return _mm512_cvtepi32_ps(sums);
}
inline Values load_values(const float* from) {
  return _mm512_loadu_ps(from);
}
inline void store_values(float* to, Values values) {
  _mm512_storeu_ps(to, values);
}
inline void stream_values(float* to, Values values) {
  _mm512_stream_ps(to, values);
}
inline Values larger(Values a, Values b) {
  return _mm512_max_ps(a, b);
}
inline Values smaller(Values a, Values b) {
  return _mm512_min_ps(a, b);
}
inline Values all_values(float value) {
  return _mm512_set1_ps(value);
}

// Four patches by kGroups times sixteen filters, all counts in registers; finish(filter, the four sums).
template <int kGroups, typename Finish>
inline void quad_tile(const SignPatches& p, size_t quad, size_t filter, Finish finish) {
  __m512i counts[4][kGroups];
#pragma GCC unroll 4
  for (int corner = 0; corner < 4; ++corner) {
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) counts[corner][g] = _mm512_setzero_si512();
  }
  const uint32_t* offsets = p.offsets + 4 * quad;
  const uint32_t* weights = p.filters + filter;
  for (size_t segment = 0; segment < p.segments; ++segment) {
    const uint32_t* base = p.image + segment * p.segment_step;
    const uint32_t* patches[4] = {base + offsets[0], base + offsets[1], base + offsets[2], base + offsets[3]};
    for (size_t k = 0; k < p.segment_words; ++k, weights += p.filter_count) {
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
  const uint8_t* cases = p.cases + 4 * quad;
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) {
    const size_t at = filter + 16 * static_cast<size_t>(g);
    __m512i sums[4];
#pragma GCC unroll 4
    for (int corner = 0; corner < 4; ++corner) {
      const __m512i base = _mm512_loadu_si512(p.bases + cases[corner] * p.filter_count + at);
      sums[corner] = _mm512_sub_epi32(base, _mm512_slli_epi32(counts[corner][g], 1));
    }
    finish(at, sums);
  }
}

template <typename Finish>
inline void for_each_quad(const SignPatches& p, Finish finish) {
  for (size_t quad = 0; quad < p.quads; ++quad) {
    const auto of_quad = [&](size_t at, const __m512i(&sums)[4]) { finish(quad, at, sums); };
    size_t filter = 0;
    for (; filter + 64 <= p.filter_count; filter += 64) quad_tile<4>(p, quad, filter, of_quad);
    for (; filter < p.filter_count; filter += 16) quad_tile<1>(p, quad, filter, of_quad);
  }
}

#include "bitfed/nn/kernels/isa/sign_loops.h"

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
  static constexpr BinaryKernels kTable = {"avx512",        sign_pools, sign_norms,
                                           sign_thresholds, sign_sums,  signs_about};
  return kTable;
}

}  // namespace bitfed::isa

#endif
