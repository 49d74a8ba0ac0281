// NEON: a register is a word of four filters.

#include "bitfed/nn/kernels/isa/binary_units.h"

#if defined(__aarch64__)

#include <arm_neon.h>

namespace bitfed::isa {
namespace {

using Sums = int32x4_t;
using Values = float32x4_t;

inline Sums load_sums(const int32_t* from) {
  return vld1q_s32(from);
}
inline Sums larger(Sums a, Sums b) {
  return vmaxq_s32(a, b);
}
inline uint32_t bits_at_least(Sums sums, Sums min) {
  const uint32x4_t offsets = {1, 2, 4, 8};
  return vaddvq_u32(vandq_u32(vcgeq_s32(sums, min), offsets));
}
inline Values values_of(Sums sums) {
  return vcvtq_f32_s32(sums);
}
inline Values load_values(const float* from) {
  return vld1q_f32(from);
}
inline void store_values(float* to, Values values) {
  vst1q_f32(to, values);
}
inline void stream_values(float* to, Values values) {
  store_values(to, values);
}
inline Values larger(Values a, Values b) {
  return vmaxq_f32(a, b);
}
inline Values smaller(Values a, Values b) {
  return vminq_f32(a, b);
}
inline Values all_values(float value) {
  return vdupq_n_f32(value);
}

constexpr size_t kRun = 31;  // words whose counts, up to 8 per byte, a byte can hold

// The sums of four filters about four pixels.
inline void quad_sums(const SignPatches& q, size_t quad, size_t filter, int32x4_t (&sums)[4]) {
  const uint32x4_t none = vdupq_n_u32(0);
  uint32x4_t counts[4] = {none, none, none, none};
  const uint32_t* offsets = q.offsets + 4 * quad;
  const uint32_t* weights = q.filters + filter;
  for (size_t segment = 0; segment < q.segments; ++segment) {
    const uint32_t* base = q.image + segment * q.segment_step;
    for (size_t first = 0; first < q.segment_words; first += kRun) {
      const size_t end = first + kRun < q.segment_words ? first + kRun : q.segment_words;
      const uint8x16_t nothing = vdupq_n_u8(0);
      uint8x16_t bytes[4] = {nothing, nothing, nothing, nothing};
      for (size_t k = first; k < end; ++k, weights += q.filter_count) {
        const uint32x4_t line = vld1q_u32(weights);
        for (int corner = 0; corner < 4; ++corner) {
          const uint32x4_t differing = veorq_u32(vdupq_n_u32(base[offsets[corner] + k]), line);
          bytes[corner] = vaddq_u8(bytes[corner], vcntq_u8(vreinterpretq_u8_u32(differing)));
        }
      }
      for (int corner = 0; corner < 4; ++corner)
        counts[corner] = vpadalq_u16(counts[corner], vpaddlq_u8(bytes[corner]));
    }
  }
  const uint8_t* cases = q.cases + 4 * quad;
  for (int corner = 0; corner < 4; ++corner) {
    const int32x4_t base = vld1q_s32(q.bases + cases[corner] * q.filter_count + filter);
    sums[corner] = vsubq_s32(base, vreinterpretq_s32_u32(vshlq_n_u32(counts[corner], 1)));
  }
}

template <typename Finish>
inline void for_each_quad(const SignPatches& q, Finish finish) {
  for (size_t quad = 0; quad < q.quads; ++quad) {
    for (size_t filter = 0; filter < q.filter_count; filter += 4) {
      Sums sums[4];
      quad_sums(q, quad, filter, sums);
      finish(quad, filter, sums);
    }
  }
}

#include "bitfed/nn/kernels/isa/sign_loops.h"

void signs_about(const float* values, size_t pixels, size_t channels, float mean, uint32_t* words) {
  const float32x4_t about = vdupq_n_f32(mean);
  const uint32_t kLaneIndexes[4] = {1, 2, 4, 8};
  const uint32x4_t offsets = vld1q_u32(kLaneIndexes);
  for (size_t pixel = 0; pixel < pixels; ++pixel) {
    for (size_t first = 0; first < channels; first += 32) {
      uint32_t word = 0;
      for (size_t i = 0; i < 32 && first + i < channels; i += 4, values += 4)
        word |= vaddvq_u32(vandq_u32(vcgeq_f32(vld1q_f32(values), about), offsets)) << i;
      *words++ = word;
    }
  }
}

}  // namespace

const BinaryKernels& neon_binary_kernels() {
  static constexpr BinaryKernels kTable = {"neon",          sign_pools, sign_norms,
                                           sign_thresholds, sign_sums,  signs_about};
  return kTable;
}

}  // namespace bitfed::isa

#endif
