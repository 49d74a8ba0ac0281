// Formulas of one value, shared by all vector units and the GPU; a part of loops.h and of cuda/lanes.h. What
// includes it defines Lanes and the operations of loops.h, and BITFED_FORMULA, which is put before every
// function.

template <Activation kActivation>
BITFED_FORMULA Lanes activate(Lanes x) {
  if constexpr (kActivation == Activation::kSign) return where_at_least(x, all(0.0f), all(1.0f), all(-1.0f));
  if constexpr (kActivation == Activation::kRelu) return larger(x, all(0.0f));
  if constexpr (kActivation == Activation::kHardtanh) return larger(smaller(x, all(1.0f)), all(-1.0f));
  return x;
}

// In the backward pass a sign is a hardtanh.
BITFED_FORMULA bool passes_within_one(Activation activation) {
  return activation == Activation::kSign || activation == Activation::kHardtanh;
}

template <Activation kActivation>
BITFED_FORMULA Lanes pass_gradient(Lanes gradient, Lanes before) {
  const Lanes none = all(0.0f);
  if constexpr (kActivation == Activation::kHardtanh)
    return where_at_least(all(1.0f), larger(before, none - before), gradient, none);
  if constexpr (kActivation == Activation::kRelu) return where_at_least(none, before, none, gradient);
  return gradient;
}

BITFED_FORMULA Lanes magnitude(Lanes x) {
  return larger(x, all(0.0f) - x);
}

// e^x for x <= 0, to about one unit in the last place; below -87 as at -87. 2^n times a polynomial in the
// rest, where n is rounded by adding and subtracting 1.5 * 2^23: that sum's low bits are n.
BITFED_FORMULA Lanes exponential(Lanes x) {
  x = larger(x, all(-87.0f));
  const Lanes rounder = all(12582912.0f);
  const Lanes shifted = fma(x, all(1.44269504f), rounder);
  const Lanes n = shifted - rounder;
  Lanes rest = fma(n, all(-0.693359375f), x);  // ln 2 in two parts, the first exact in few bits
  rest = fma(n, all(2.12194440e-4f), rest);
  Lanes sum = all(1.9875691e-4f);
  sum = fma(sum, rest, all(1.3981999e-3f));
  sum = fma(sum, rest, all(8.3334519e-3f));
  sum = fma(sum, rest, all(4.1665795e-2f));
  sum = fma(sum, rest, all(1.6666665e-1f));
  sum = fma(sum, rest, all(5.0000001e-1f));
  sum = fma(sum * rest, rest, rest) + all(1.0f);
  return add_exponent(sum, shifted);
}

// k max(sqrt(2) t - t^2 |x|, 0) of the surrogate, with k >= 0
struct Slope {
  Lanes k, height, fall;

  BITFED_FORMULA explicit Slope(const Surrogate& s)
      : k(all(s.k)), height(all(1.41421356f * s.t)), fall(all(-s.t * s.t)) {}
  BITFED_FORMULA Lanes at(Lanes x) const { return k * larger(fma(fall, magnitude(x), height), all(0.0f)); }
};

// The differences that a filter is pulled by, and the blend.
struct Blend {
  Lanes to_rotated, to_anchor, blended;

  BITFED_FORMULA Blend(Lanes weights, Lanes rotated, Lanes anchor, float alpha, float beta) {
    to_rotated = rotated - weights;
    to_anchor = anchor - weights;
    blended = fma(all(beta), to_anchor, fma(all(alpha), to_rotated, weights));
  }
};
