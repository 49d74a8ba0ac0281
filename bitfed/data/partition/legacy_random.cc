#include "bitfed/data/partition/legacy_random.h"

#include <cassert>
#include <cmath>

namespace bitfed {

double LegacyRandom::uniform() {
  const auto high = static_cast<double>(twister_() >> 5);
  const auto low = static_cast<double>(twister_() >> 6);
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

double LegacyRandom::exponential() {
  return -std::log(1 - uniform());
}

// Ahrens and Dieter's rejection method for shapes below one.
double LegacyRandom::gamma(double shape) {
  assert(shape > 0 && shape < 1);
  for (;;) {
    const double u = uniform();
    const double v = exponential();
    if (u <= 1 - shape) {
      const double x = std::pow(u, 1 / shape);
      if (x <= v) return x;
    } else {
      const double y = -std::log((1 - u) / shape);
      const double x = std::pow(1 - shape + shape * y, 1 / shape);
      if (x <= v + y) return x;
    }
  }
}

std::vector<double> LegacyRandom::dirichlet(double alpha, size_t count) {
  std::vector<double> shares(count);
  double sum = 0;
  for (double& share : shares) sum += share = gamma(alpha);
  for (double& share : shares) share *= 1 / sum;
  return shares;
}

}  // namespace bitfed
