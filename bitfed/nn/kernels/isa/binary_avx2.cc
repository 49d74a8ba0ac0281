// AVX2: a register is a word of eight filters; bits are counted by looking up halves of bytes.

#include "bitfed/nn/kernels/isa/binary_units.h"

#if defined(__AVX2__)

#include <immintrin.h>

namespace bitfed::isa {
namespace {

using Sums = __m256i;
using Values = __m256;

inline __m256i load(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
inline Sums load_sums(const int32_t* from) {
  return load(from);
}
inline Sums larger(Sums a, Sums b) {
  return _mm256_max_epi32(a, b);
}
inline uint32_t bits_at_least(Sums sums, Sums min) {
  const __m256i below = _mm256_cmpgt_epi32(min, sums);
  return static_cast<uint32_t>(~_mm256_movemask_ps(_mm256_castsi256_ps(below)) & 255);
}
inline Values values_of(Sums sums) {
  return _mm256_cvtepi32_ps(sums);
}
inline Values load_values(const float* from) {
  return _mm256_loadu_ps(from);
}
inline void store_values(float* to, Values values) {
  _mm256_storeu_ps(to, values);
}
inline void stream_values(float* to, Values values) {
  _mm256_stream_ps(to, values);
}
inline Values larger(Values a, Values b) {
  return _mm256_max_ps(a, b);
}
inline Values smaller(Values a, Values b) {
  return _mm256_min_ps(a, b);
}
inline Values all_values(float value) {
  return _mm256_set1_ps(value);
}

inline __m256i byte_counts(__m256i x) {
  const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2,
                                         3, 1, 2, 2, 3, 2, 3, 3, 4);
  const __m256i half = _mm256_set1_epi8(15);
  const __m256i low = _mm256_shuffle_epi8(table, _mm256_and_si256(x, half));
  const __m256i high = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi32(x, 4), half));
  return _mm256_add_epi8(low, high);
}

// The bytes of each 32 bits, added up.
inline __m256i word_counts(__m256i bytes) {
  const __m256i pairs = _mm256_maddubs_epi16(bytes, _mm256_set1_epi8(1));
  return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

constexpr size_t kRun = 31;  // words whose counts, up to 8 per byte, a byte can hold

// The sums of eight filters about four pixels.
inline void quad_sums(const SignPatches& q, size_t quad, size_t filter, __m256i (&sums)[4]) {
  const __m256i none = _mm256_setzero_si256();
  __m256i counts[4] = {none, none, none, none};
  const uint32_t* offsets = q.offsets + 4 * quad;
  const uint32_t* weights = q.filters + filter;
  for (size_t segment = 0; segment < q.segments; ++segment) {
    const uint32_t* base = q.image + segment * q.segment_step;
    for (size_t first = 0; first < q.segment_words; first += kRun) {
      const size_t end = first + kRun < q.segment_words ? first + kRun : q.segment_words;
      __m256i bytes[4] = {none, none, none, none};
      for (size_t k = first; k < end; ++k, weights += q.filter_count) {
        const __m256i line = load(weights);
#pragma GCC unroll 4
        for (int corner = 0; corner < 4; ++corner) {
          const __m256i word = _mm256_set1_epi32(static_cast<int>(base[offsets[corner] + k]));
          bytes[corner] = _mm256_add_epi8(bytes[corner], byte_counts(_mm256_xor_si256(word, line)));
        }
      }
#pragma GCC unroll 4
      for (int corner = 0; corner < 4; ++corner)
        counts[corner] = _mm256_add_epi32(counts[corner], word_counts(bytes[corner]));
    }
  }
  const uint8_t* cases = q.cases + 4 * quad;
#pragma GCC unroll 4
  for (int corner = 0; corner < 4; ++corner) {
    const __m256i base = load(q.bases + cases[corner] * q.filter_count + filter);
    sums[corner] = _mm256_sub_epi32(base, _mm256_slli_epi32(counts[corner], 1));
  }
}

template <typename Finish>
inline void for_each_quad(const SignPatches& q, Finish finish) {
  for (size_t quad = 0; quad < q.quads; ++quad) {
    for (size_t filter = 0; filter < q.filter_count; filter += 8) {
      Sums sums[4];
      quad_sums(q, quad, filter, sums);
      finish(quad, filter, sums);
    }
  }
}

#include "bitfed/nn/kernels/isa/sign_loops.h"

void signs_about(const float* values, size_t pixels, size_t channels, float mean, uint32_t* words) {
  const __m256 about = _mm256_set1_ps(mean);
  for (size_t pixel = 0; pixel < pixels; ++pixel) {
    for (size_t first = 0; first < channels; first += 32) {
      uint32_t word = 0;
      for (size_t i = 0; i < 32 && first + i < channels; i += 8, values += 8) {
        const int bits = _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(values), about, _CMP_GE_OQ));
        word |= static_cast<uint32_t>(bits) << i;
      }
      *words++ = word;
    }
  }
}

}  // namespace

const BinaryKernels& avx2_binary_kernels() {
  static constexpr BinaryKernels kTable = {"avx2",          sign_pools, sign_norms,
                                           sign_thresholds, sign_sums,  signs_about};
  return kTable;
}

}  // namespace bitfed::isa

#endif
