#pragma once

// Sine and cosine of angles, with the same bits wherever they are computed: a library's own differ from one
// library to the next, and on a GPU. Plain C++ that a CUDA compiler takes, too. Every operation is written
// out: products and sums stand apart, so that no compiler can contract them, and fused ones by fused().

#ifndef BITFED_DEVICE
#ifdef __CUDACC__
#define BITFED_DEVICE __host__ __device__
#else
#define BITFED_DEVICE
#endif
#endif

namespace bitfed {

// a * b + c with one rounding.
BITFED_DEVICE inline double fused(double a, double b, double c) {
#ifdef __CUDA_ARCH__
  return __fma_rn(a, b, c);
#else
  return __builtin_fma(a, b, c);
#endif
}

// x = quadrant * pi / 2 + rest, with |rest| at most a little above pi / 4. An angle of 2^30 or more counts
// as 0; one that is not finite gives a rest that is not a number.
struct ReducedAngle {
  int quadrant;  // modulo 4
  double rest;
};

BITFED_DEVICE inline ReducedAngle reduce_angle(float angle) {
  constexpr double kLimit = 1073741824.0;
  constexpr double kRounder = 6755399441055744.0;  // 1.5 * 2^52: such a sum is rounded to an integer
  const double x = angle;
  if (!(x < kLimit && x > -kLimit)) return {0, x - x};
  const double turns = fused(x, 0.63661977236758134308, kRounder) - kRounder;
  // pi / 2 in two parts, of 53 bits each.
  const double rest = fused(-turns, 6.123233995736766036e-17, fused(-turns, 1.5707963267948965580, x));
  return {static_cast<int>(static_cast<long long>(turns) & 3), rest};
}

// Taylor's series for |x| up to pi / 4, to 3e-14 of the result.
BITFED_DEVICE inline double sine_near_zero(double x) {
  const double square = x * x;
  double sum = 1.0 / 6227020800.0;
  sum = fused(sum, square, -1.0 / 39916800.0);
  sum = fused(sum, square, 1.0 / 362880.0);
  sum = fused(sum, square, -1.0 / 5040.0);
  sum = fused(sum, square, 1.0 / 120.0);
  sum = fused(sum, square, -1.0 / 6.0);
  return fused(x * square, sum, x);
}

BITFED_DEVICE inline double cosine_near_zero(double x) {
  const double square = x * x;
  double sum = -1.0 / 87178291200.0;
  sum = fused(sum, square, 1.0 / 479001600.0);
  sum = fused(sum, square, -1.0 / 3628800.0);
  sum = fused(sum, square, 1.0 / 40320.0);
  sum = fused(sum, square, -1.0 / 720.0);
  sum = fused(sum, square, 1.0 / 24.0);
  sum = fused(sum, square, -0.5);
  return fused(sum, square, 1.0);
}

// Of quadrant * pi / 2 + rest.
BITFED_DEVICE inline float sine_of(int quadrant, double rest) {
  const double value = (quadrant & 1) != 0 ? cosine_near_zero(rest) : sine_near_zero(rest);
  return static_cast<float>((quadrant & 2) != 0 ? -value : value);
}

// To better than 0.501 units in the last place.
BITFED_DEVICE inline float sine(float angle) {
  const ReducedAngle reduced = reduce_angle(angle);
  return sine_of(reduced.quadrant, reduced.rest);
}

BITFED_DEVICE inline float cosine(float angle) {
  const ReducedAngle reduced = reduce_angle(angle);
  return sine_of(reduced.quadrant + 1, reduced.rest);
}

}  // namespace bitfed
