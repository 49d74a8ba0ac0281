// AVX-512 with VPOPCNTDQ: a register is a word of sixteen filters.

#include "bitfed/nn/isa/binary_units.h"

#if defined(__AVX512VPOPCNTDQ__)

#include <immintrin.h>

namespace bitfed::isa {
namespace {

// Four patches by kGroups times sixteen filters, all counts in registers; finish(filter, the four sums).
template <int kGroups, typename Finish>
inline void quad_tile(const SignPatches& p, size_t quad, size_t filter, Finish finish) {
  __m512i counts[4][kGroups];
#pragma GCC unroll 4
  for (int corner = 0; corner < 4; ++corner) {
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) counts[corner][g] = _mm512_setzero_si512();
  }
  const uint32_t* places = p.places + 4 * quad;
  const uint32_t* weights = p.filters + filter;
  for (size_t segment = 0; segment < p.segments; ++segment) {
    const uint32_t* base = p.image + segment * p.segment_step;
    const uint32_t* patches[4] = {base + places[0], base + places[1], base + places[2], base + places[3]};
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

inline __m512 clipped(__m512 x) {
  return _mm512_max_ps(_mm512_min_ps(x, _mm512_set1_ps(1.0f)), _mm512_set1_ps(-1.0f));
}

inline __m512i largest_of(const __m512i (&sums)[4]) {
  return _mm512_max_epi32(_mm512_max_epi32(sums[0], sums[1]), _mm512_max_epi32(sums[2], sums[3]));
}

void sign_pools(const SignPatches& p, const SignPools& pools) {
  for_each_quad(p, [&](size_t quad, size_t at, const __m512i(&sums)[4]) {
    const __m512 product =
        _mm512_mul_ps(_mm512_cvtepi32_ps(largest_of(sums)), _mm512_loadu_ps(pools.factor + at));
    const __m512 x = _mm512_add_ps(product, _mm512_loadu_ps(pools.offset + at));
    _mm512_storeu_ps(pools.out + quad * p.filter_count + at, clipped(x));
  });
}

void sign_norms(const SignPatches& p, const SignNorms& norms) {
  for_each_quad(p, [&](size_t quad, size_t at, const __m512i(&sums)[4]) {
    const __m512 factor = _mm512_loadu_ps(norms.factor + at);
    const __m512 offset = _mm512_loadu_ps(norms.offset + at);
#pragma GCC unroll 4
    for (size_t corner = 0; corner < 4; ++corner) {
      const size_t to = (4 * quad + corner) * p.filter_count + at;
      __m512 x = _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sums[corner]), factor), offset);
      if (norms.shortcut != nullptr) x = _mm512_add_ps(x, _mm512_loadu_ps(norms.shortcut + to));
      _mm512_storeu_ps(norms.out + to, norms.clips ? clipped(x) : x);
    }
  });
}

void sign_thresholds(const SignPatches& p, const SignThresholds& t) {
  for_each_quad(p, [&](size_t quad, size_t at, const __m512i(&sums)[4]) {
    const __m512i least = _mm512_loadu_si512(t.least + at);
    const auto put = [&](size_t place, __m512i sum) {
      const uint32_t bits = _mm512_cmpge_epi32_mask(sum, least);
      t.words[t.places[place] + at / 32] |= bits << (at % 32);
    };
    if (t.pools) {
      put(quad, largest_of(sums));
    } else {
#pragma GCC unroll 4
      for (size_t corner = 0; corner < 4; ++corner) put(4 * quad + corner, sums[corner]);
    }
  });
}

void sign_sums(const SignPatches& p, float* out) {
  for_each_quad(p, [&](size_t quad, size_t at, const __m512i(&sums)[4]) {
#pragma GCC unroll 4
    for (size_t corner = 0; corner < 4; ++corner)
      _mm512_storeu_ps(out + (4 * quad + corner) * p.filter_count + at, _mm512_cvtepi32_ps(sums[corner]));
  });
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
  static constexpr BinaryKernels kTable = {"avx512",        sign_pools, sign_norms,
                                           sign_thresholds, sign_sums,  signs_about};
  return kTable;
}

}  // namespace bitfed::isa

#endif
