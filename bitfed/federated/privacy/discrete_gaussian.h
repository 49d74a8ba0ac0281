#pragma once

#include <cstdint>

#include "bitfed/federated/privacy/random_bits.h"

namespace bitfed {

// Draws integers x with probability proportional to exp(-x^2 / (2 sigma^2)), exactly: by integers alone, so
// that no rounding of a floating-point number can give away what the noise hides (Canonne, Kamath, Steinke,
// "The discrete Gaussian for differential privacy", 2020, algorithms 2 and 3).
class DiscreteGaussian {
 public:
  static constexpr uint64_t kMaxSigma = uint64_t{1} << 26;

  // `sigma` from 1 to kMaxSigma.
  DiscreteGaussian(uint64_t sigma, RandomWords words);

  int64_t draw();

 private:
  int64_t draw_laplace();

  uint64_t sigma_;
  uint64_t scale_;  // of the discrete Laplace distribution that is thinned out
  RandomBits bits_;
};

}  // namespace bitfed
