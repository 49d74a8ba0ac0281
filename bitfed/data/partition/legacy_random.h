#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace bitfed {

// The draws after numpy.random.seed(seed): the Mersenne Twister with numpy's legacy distributions. Papers
// publish seeds, not splits; this generator reproduces their splits. Not for anything else.
class LegacyRandom {
 public:
  explicit LegacyRandom(uint32_t seed) : twister_(seed) {}

  double uniform();  // numpy.random.random_sample()
  double exponential();
  double gamma(double shape);                                 // 0 < shape < 1
  std::vector<double> dirichlet(double alpha, size_t count);  // numpy.random.dirichlet([alpha] * count)

 private:
  std::mt19937 twister_;
};

}  // namespace bitfed
