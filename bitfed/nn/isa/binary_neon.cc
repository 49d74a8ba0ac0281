// NEON: a register is a word of four filters.

#include "bitfed/nn/isa/binary_units.h"

#if defined(__aarch64__)

#include <arm_neon.h>

namespace bitfed::isa {
namespace {

constexpr size_t kRun = 31;  // words whose counts, up to 8 a byte, a byte can hold

// The sums of four filters about four pixels.
inline void quad_sums(const SignPatches& q, size_t quad, size_t filter, int32x4_t (&sums)[4]) {
  const uint32x4_t none = vdupq_n_u32(0);
  uint32x4_t counts[4] = {none, none, none, none};
  const uint32_t* places = q.places + 4 * quad;
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
          const uint32x4_t differing = veorq_u32(vdupq_n_u32(base[places[corner] + k]), line);
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

inline float32x4_t clipped(float32x4_t x) {
  return vmaxq_f32(vminq_f32(x, vdupq_n_f32(1.0f)), vdupq_n_f32(-1.0f));
}

inline int32x4_t largest_of(const int32x4_t (&sums)[4]) {
  return vmaxq_s32(vmaxq_s32(sums[0], sums[1]), vmaxq_s32(sums[2], sums[3]));
}

void sign_pools(const SignPatches& q, const SignPools& pools) {
  for (size_t quad = 0; quad < q.quads; ++quad) {
    for (size_t filter = 0; filter < q.filter_count; filter += 4) {
      int32x4_t sums[4];
      quad_sums(q, quad, filter, sums);
      const float32x4_t product =
          vmulq_f32(vcvtq_f32_s32(largest_of(sums)), vld1q_f32(pools.factor + filter));
      const float32x4_t x = vaddq_f32(product, vld1q_f32(pools.offset + filter));
      vst1q_f32(pools.out + quad * q.filter_count + filter, clipped(x));
    }
  }
}

void sign_norms(const SignPatches& q, const SignNorms& norms) {
  for (size_t quad = 0; quad < q.quads; ++quad) {
    for (size_t filter = 0; filter < q.filter_count; filter += 4) {
      int32x4_t sums[4];
      quad_sums(q, quad, filter, sums);
      const float32x4_t factor = vld1q_f32(norms.factor + filter);
      const float32x4_t offset = vld1q_f32(norms.offset + filter);
      for (size_t corner = 0; corner < 4; ++corner) {
        const size_t to = (4 * quad + corner) * q.filter_count + filter;
        float32x4_t x = vaddq_f32(vmulq_f32(vcvtq_f32_s32(sums[corner]), factor), offset);
        if (norms.shortcut != nullptr) x = vaddq_f32(x, vld1q_f32(norms.shortcut + to));
        vst1q_f32(norms.out + to, norms.clips ? clipped(x) : x);
      }
    }
  }
}

void sign_thresholds(const SignPatches& q, const SignThresholds& t) {
  const uint32_t kPlaces[4] = {1, 2, 4, 8};
  const uint32x4_t places = vld1q_u32(kPlaces);
  for (size_t quad = 0; quad < q.quads; ++quad) {
    for (size_t filter = 0; filter < q.filter_count; filter += 4) {
      int32x4_t sums[4];
      quad_sums(q, quad, filter, sums);
      const int32x4_t least = vld1q_s32(t.least + filter);
      const auto put = [&](size_t place, int32x4_t sum) {
        const uint32_t bits = vaddvq_u32(vandq_u32(vcgeq_s32(sum, least), places));
        t.words[t.places[place] + filter / 32] |= bits << (filter % 32);
      };
      if (t.pools) {
        put(quad, largest_of(sums));
      } else {
        for (size_t corner = 0; corner < 4; ++corner) put(4 * quad + corner, sums[corner]);
      }
    }
  }
}

void sign_sums(const SignPatches& q, float* out) {
  for (size_t quad = 0; quad < q.quads; ++quad) {
    for (size_t filter = 0; filter < q.filter_count; filter += 4) {
      int32x4_t sums[4];
      quad_sums(q, quad, filter, sums);
      for (size_t corner = 0; corner < 4; ++corner)
        vst1q_f32(out + (4 * quad + corner) * q.filter_count + filter, vcvtq_f32_s32(sums[corner]));
    }
  }
}

void signs_about(const float* values, size_t pixels, size_t channels, float mean, uint32_t* words) {
  const float32x4_t about = vdupq_n_f32(mean);
  const uint32_t kPlaces[4] = {1, 2, 4, 8};
  const uint32x4_t places = vld1q_u32(kPlaces);
  for (size_t pixel = 0; pixel < pixels; ++pixel) {
    for (size_t first = 0; first < channels; first += 32) {
      uint32_t word = 0;
      for (size_t i = 0; i < 32 && first + i < channels; i += 4, values += 4)
        word |= vaddvq_u32(vandq_u32(vcgeq_f32(vld1q_f32(values), about), places)) << i;
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
