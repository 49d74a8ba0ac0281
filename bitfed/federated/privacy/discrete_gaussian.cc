#include "bitfed/federated/privacy/discrete_gaussian.h"

#include <cassert>

namespace bitfed {

DiscreteGaussian::DiscreteGaussian(uint64_t sigma, RandomWords words)
    : sigma_(sigma), scale_(sigma + 1), bits_(std::move(words)) {
  assert(sigma >= 1 && sigma <= kMaxSigma);
}

int64_t DiscreteGaussian::draw_laplace() {
  while (true) {
    const uint64_t low = bits_.below(scale_);
    if (!bits_.with_probability_exp(low, scale_)) continue;
    uint64_t high = 0;
    while (bits_.with_probability_exp(1, 1)) ++high;
    const auto size = static_cast<int64_t>(low + scale_ * high);
    const bool negative = bits_.bit();
    if (negative && size == 0) continue;
    return negative ? -size : size;
  }
}

// A draw y of the Laplace distribution stays with probability exp(-(|y| - sigma^2 / t)^2 / (2 sigma^2)).
int64_t DiscreteGaussian::draw() {
  using Wide = RandomBits::Wide;
  const Wide variance = Wide{sigma_} * sigma_;
  // Beyond 64 scales the squares below could overflow. Such a draw has a probability of e^-64 and would stay
  // with one of e^-1900, which no test or attack can tell from 0.
  while (true) {
    const int64_t drawn = draw_laplace();
    const Wide size = static_cast<uint64_t>(drawn < 0 ? -drawn : drawn);
    if (size > Wide{64} * scale_) continue;
    const Wide from = size * scale_;
    const Wide distance = from > variance ? from - variance : variance - from;
    if (bits_.with_probability_exp(distance * distance, 2 * variance * scale_ * scale_)) return drawn;
  }
}

}  // namespace bitfed
