// NEON of 64-bit ARM: sixteen floats are four registers.

#include "bitfed/nn/kernels/isa/units.h"

#if defined(__aarch64__)

#include <arm_neon.h>

namespace bitfed::isa {
namespace {

struct Lanes {
  float32x4_t a, b, c, d;
};

inline Lanes load(const float* p) {
  return {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}
inline void store(float* p, Lanes x) {
  vst1q_f32(p, x.a);
  vst1q_f32(p + 4, x.b);
  vst1q_f32(p + 8, x.c);
  vst1q_f32(p + 12, x.d);
}
inline void stream(float* p, Lanes x) {
  store(p, x);
}
inline Lanes all(float value) {
  const float32x4_t v = vdupq_n_f32(value);
  return {v, v, v, v};
}
template <typename Operation>
inline Lanes each(Lanes x, Lanes y, Operation operation) {
  return {operation(x.a, y.a), operation(x.b, y.b), operation(x.c, y.c), operation(x.d, y.d)};
}
inline Lanes operator+(Lanes x, Lanes y) {
  return each(x, y, [](float32x4_t p, float32x4_t q) { return vaddq_f32(p, q); });
}
inline Lanes operator-(Lanes x, Lanes y) {
  return each(x, y, [](float32x4_t p, float32x4_t q) { return vsubq_f32(p, q); });
}
inline Lanes operator*(Lanes x, Lanes y) {
  return each(x, y, [](float32x4_t p, float32x4_t q) { return vmulq_f32(p, q); });
}
inline Lanes operator/(Lanes x, Lanes y) {
  return each(x, y, [](float32x4_t p, float32x4_t q) { return vdivq_f32(p, q); });
}
inline Lanes fma(Lanes x, Lanes y, Lanes z) {
  return {vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c),
          vfmaq_f32(z.d, x.d, y.d)};
}
inline Lanes root(Lanes x) {
  return {vsqrtq_f32(x.a), vsqrtq_f32(x.b), vsqrtq_f32(x.c), vsqrtq_f32(x.d)};
}
// As x86 has them: the second operand where the two are equal or one is not a number.
inline Lanes larger(Lanes x, Lanes y) {
  return each(x, y, [](float32x4_t p, float32x4_t q) { return vbslq_f32(vcgtq_f32(p, q), p, q); });
}
inline Lanes smaller(Lanes x, Lanes y) {
  return each(x, y, [](float32x4_t p, float32x4_t q) { return vbslq_f32(vcltq_f32(p, q), p, q); });
}
inline Lanes where_at_least(Lanes a, Lanes b, Lanes x, Lanes y) {
  return {vbslq_f32(vcgeq_f32(a.a, b.a), x.a, y.a), vbslq_f32(vcgeq_f32(a.b, b.b), x.b, y.b),
          vbslq_f32(vcgeq_f32(a.c, b.c), x.c, y.c), vbslq_f32(vcgeq_f32(a.d, b.d), x.d, y.d)};
}
inline Lanes add_exponent(Lanes x, Lanes shifted) {
  return each(x, shifted, [](float32x4_t p, float32x4_t q) {
    const uint32x4_t n = vshlq_n_u32(vreinterpretq_u32_f32(q), 23);
    return vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(p), n));
  });
}
inline float sum_of(Lanes x) {
  const float32x4_t four = vaddq_f32(vaddq_f32(x.a, x.c), vaddq_f32(x.b, x.d));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
inline uint32_t nonzeros_of(Lanes x) {
  const auto mask = [](float32x4_t four) {
    const uint32x4_t bits = {1, 2, 4, 8};
    return vaddvq_u32(vbicq_u32(bits, vceqzq_f32(four)));
  };
  return mask(x.a) | mask(x.b) << 4 | mask(x.c) << 8 | mask(x.d) << 12;
}
inline size_t list_nonzeros_of(Lanes x, const uint32_t* offsets, float* values, uint32_t* found) {
  float all[kLanes];
  store(all, x);
  size_t listed = 0;
  for (size_t i = 0; i < kLanes; ++i) {
    values[listed] = all[i];
    found[listed] = offsets[i];
    listed += all[i] != 0 ? 1 : 0;
  }
  return listed;
}
inline Lanes where_below(const uint32_t* draws, uint32_t bound, Lanes x, Lanes y) {
  const auto four = [&](const uint32_t* at, float32x4_t p, float32x4_t q) {
    return vbslq_f32(vcltq_u32(vld1q_u32(at), vdupq_n_u32(bound)), p, q);
  };
  return {four(draws, x.a, y.a), four(draws + 4, x.b, y.b), four(draws + 8, x.c, y.c),
          four(draws + 12, x.d, y.d)};
}
inline float largest_of(Lanes x) {
  return vmaxvq_f32(vmaxq_f32(vmaxq_f32(x.a, x.b), vmaxq_f32(x.c, x.d)));
}

typedef uint64x2_t Words;
constexpr size_t kWords = 2;

inline Words low_products(Words x, uint32_t factor) {
  return vmull_n_u32(vmovn_u64(x), factor);
}
inline void store_words(uint32_t* p, Words x, Words y) {
  vst1q_u32(p, vreinterpretq_u32_u64(vzip1q_u64(x, y)));
  vst1q_u32(p + 4, vreinterpretq_u32_u64(vzip2q_u64(x, y)));
}

struct Doubles {
  float64x2_t v[8];
};

inline Doubles no_doubles() {
  const float64x2_t none = vdupq_n_f64(0);
  return {{none, none, none, none, none, none, none, none}};
}
inline Doubles add(Doubles sums, Lanes x) {
  const float32x4_t fours[4] = {x.a, x.b, x.c, x.d};
  for (int i = 0; i < 4; ++i) {
    sums.v[2 * i] = vaddq_f64(sums.v[2 * i], vcvt_f64_f32(vget_low_f32(fours[i])));
    sums.v[2 * i + 1] = vaddq_f64(sums.v[2 * i + 1], vcvt_high_f64_f32(fours[i]));
  }
  return sums;
}
inline double sum_of(Doubles sums) {
  for (int half = 4; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) sums.v[i] = vaddq_f64(sums.v[i], sums.v[i + half]);
  }
  return vgetq_lane_f64(sums.v[0], 0) + vgetq_lane_f64(sums.v[0], 1);
}

struct Pairs {
  int32x4_t a, b, c, d;
};

inline Pairs no_sums() {
  const int32x4_t none = vdupq_n_s32(0);
  return {none, none, none, none};
}
inline Pairs load_sums(const int32_t* p) {
  return {vld1q_s32(p), vld1q_s32(p + 4), vld1q_s32(p + 8), vld1q_s32(p + 12)};
}
inline void store_sums(int32_t* p, Pairs sums) {
  vst1q_s32(p, sums.a);
  vst1q_s32(p + 4, sums.b);
  vst1q_s32(p + 8, sums.c);
  vst1q_s32(p + 12, sums.d);
}
inline int32x4_t four_pairs(const int16_t* p) {
  return vreinterpretq_s32_s16(vld1q_s16(p));
}
inline Pairs load_pairs(const int16_t* p) {
  return {four_pairs(p), four_pairs(p + 8), four_pairs(p + 16), four_pairs(p + 24)};
}
inline Pairs all_pairs(const int16_t* p) {
  int pair;
  __builtin_memcpy(&pair, p, sizeof(pair));
  const int32x4_t v = vdupq_n_s32(pair);
  return {v, v, v, v};
}
inline int32x4_t dot(int32x4_t sums, int32x4_t x, int32x4_t y) {
  const int16x8_t a = vreinterpretq_s16_s32(x);
  const int16x8_t b = vreinterpretq_s16_s32(y);
  return vaddq_s32(sums, vpaddq_s32(vmull_s16(vget_low_s16(a), vget_low_s16(b)), vmull_high_s16(a, b)));
}
inline int32x4_t zipped(int16x8_t x) {
  return vreinterpretq_s32_s16(x);
}
inline Pairs paired(const int16_t* even, const int16_t* odd) {
  const int16x8_t x = vld1q_s16(even);
  const int16x8_t y = vld1q_s16(odd);
  const int16x8_t z = vld1q_s16(even + 8);
  const int16x8_t w = vld1q_s16(odd + 8);
  return {zipped(vzip1q_s16(x, y)), zipped(vzip2q_s16(x, y)), zipped(vzip1q_s16(z, w)),
          zipped(vzip2q_s16(z, w))};
}
inline void store_pairs(int16_t* p, Pairs x) {
  vst1q_s16(p, vreinterpretq_s16_s32(x.a));
  vst1q_s16(p + 8, vreinterpretq_s16_s32(x.b));
  vst1q_s16(p + 16, vreinterpretq_s16_s32(x.c));
  vst1q_s16(p + 24, vreinterpretq_s16_s32(x.d));
}
inline int32x4_t signs_of(int32x4_t pairs) {
  return zipped(vorrq_s16(vshrq_n_s16(vreinterpretq_s16_s32(pairs), 15), vdupq_n_s16(1)));
}
inline Pairs signs_of(Pairs x) {
  return {signs_of(x.a), signs_of(x.b), signs_of(x.c), signs_of(x.d)};
}
inline size_t transpose_four(const int16_t* /*from*/, size_t /*columns*/, int16_t* /*to*/,
                             size_t /*to_step*/) {
  return 0;
}
inline Pairs dot(Pairs sums, Pairs x, Pairs y) {
  return {dot(sums.a, x.a, y.a), dot(sums.b, x.b, y.b), dot(sums.c, x.c, y.c), dot(sums.d, x.d, y.d)};
}
inline Lanes floats_of(Pairs sums) {
  return {vcvtq_f32_s32(sums.a), vcvtq_f32_s32(sums.b), vcvtq_f32_s32(sums.c), vcvtq_f32_s32(sums.d)};
}
inline void store_rounded(int16_t* p, float32x4_t x, float32x4_t y) {
  vst1q_s16(p, vcombine_s16(vmovn_s32(vcvtnq_s32_f32(x)), vmovn_s32(vcvtnq_s32_f32(y))));
}
inline void store_rounded(int16_t* p, Lanes x) {
  store_rounded(p, x.a, x.b);
  store_rounded(p + 8, x.c, x.d);
}
inline void store_paired(int16_t* p, float32x4_t even, float32x4_t odd) {
  vst1q_s16(p, vreinterpretq_s16_s32(vsliq_n_s32(vcvtnq_s32_f32(even), vcvtnq_s32_f32(odd), 16)));
}
inline void store_rounded(int16_t* p, Lanes even, Lanes odd) {
  store_paired(p, even.a, odd.a);
  store_paired(p + 8, even.b, odd.b);
  store_paired(p + 16, even.c, odd.c);
  store_paired(p + 24, even.d, odd.d);
}

// 24 of the 32 registers for sums.
constexpr int kWideRows = 1;
constexpr int kGatheredWideRows = 1;
constexpr int kWideVectors = 0;
constexpr int kPairRows = 3;
constexpr int kSingleRows = 6;
constexpr int kSparseVectors = 6;
constexpr int kColumnBlocks = 2;

#include "bitfed/nn/kernels/isa/loops.h"

}  // namespace

const NeuralKernels& neon_neural_kernels() {
  static constexpr NeuralKernels kTable = table("neon");
  return kTable;
}

}  // namespace bitfed::isa

#endif
