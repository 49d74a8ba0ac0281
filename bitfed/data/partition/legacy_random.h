#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace bitfed {

// The draws that numpy.random.seed(seed) starts: the Mersenne twister with numpy's legacy distributions.
// Papers publish seeds, not splits; with their generator their splits can be had. Not for anything else.
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
