#pragma once

namespace bitfed {

// Functions that the C code of several models needs.

inline constexpr const char* kCOnes = R"(
static int ones(uint32_t x) {
  x -= x >> 1 & 0x55555555u;
  x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0fu;
  return (int)(x * 0x01010101u >> 24);
}
)";

inline constexpr const char* kCSignedSum = R"(
/* The sum of the inputs, those with a bit of 0 negated. */
static float signed_sum(const float *from, int count, const uint32_t *signs) {
  float sum = 0;
  int i;
  for (i = 0; i < count; ++i) {
    if ((signs[i >> 5] >> (i & 31) & 1) != 0) {
      sum += from[i];
    } else {
      sum -= from[i];
    }
  }
  return sum;
}
)";

// The product of two floats is exact in a double. The sum is rounded to odd (Boldo and Melquiond, 2008), so
// that rounding it again, to a float, is rounding once.
inline constexpr const char* kCFused = R"(
/* a * b + c, rounded once. */
static float fused(float a, float b, float c) {
#if defined(__FP_FAST_FMAF)
  return __builtin_fmaf(a, b, c);
#else
  const double product = (double)a * b;
  double sum = product + c;
  const double added = sum - product;
  const double lost = (product - (sum - added)) + (c - added);
  uint64_t word;
  memcpy(&word, &sum, sizeof(word));
  if (lost != 0 && (word & 1) == 0) {
    word = (lost > 0) == (sum > 0) ? word + 1 : word - 1;
    memcpy(&sum, &word, sizeof(sum));
  }
  return (float)sum;
#endif
}
)";

}  // namespace bitfed
