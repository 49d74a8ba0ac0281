#include "bitfed/federated/privacy/discrete_gaussian.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

namespace bitfed {
namespace {

RandomWords words(uint64_t seed) {
  return seeded_random_words({seed, "noise"});
}

// The probabilities of 0, 1, … by the definition; what is beyond is below 1e-16.
std::vector<double> exact(uint64_t sigma) {
  std::vector<double> result;
  double sum = 0;
  const auto variance = static_cast<double>(sigma * sigma);
  for (uint64_t x = 0; x <= 9 * sigma; ++x) {
    result.push_back(std::exp(-static_cast<double>(x * x) / (2 * variance)));
    sum += (x == 0 ? 1 : 2) * result.back();
  }
  for (double& probability : result) probability /= sum;
  return result;
}

// Chi-square over all values that are expected at least ten times, each sign by itself. The fixed seed makes
// the test repeatable; the limit is that of a probability of 1e-4 (Wilson and Hilferty).
TEST(DiscreteGaussianTest, HasItsExactDistribution) {
  constexpr int kDraws = 200000;
  for (const uint64_t sigma : {1, 2, 3, 5, 17}) {
    DiscreteGaussian gaussian(sigma, words(sigma));
    std::map<int64_t, int> counts;
    for (int i = 0; i < kDraws; ++i) ++counts[gaussian.draw()];
    const std::vector<double> probability = exact(sigma);
    double square = 0;
    int cells = 0;
    for (auto x = -static_cast<int64_t>(9 * sigma); x <= static_cast<int64_t>(9 * sigma); ++x) {
      const double expected = kDraws * probability[static_cast<size_t>(std::abs(x))];
      if (expected < 10) continue;
      const double off = counts[x] - expected;
      square += off * off / expected;
      ++cells;
    }
    const double freedom = cells - 1;
    const double root = 1 - 2 / (9 * freedom) + 3.72 * std::sqrt(2 / (9 * freedom));
    EXPECT_LT(square, freedom * root * root * root) << "sigma " << sigma << ", " << cells << " values";
  }
}

TEST(DiscreteGaussianTest, MomentsOfLargeNoise) {
  for (const uint64_t sigma : {uint64_t{1000}, uint64_t{1} << 20, DiscreteGaussian::kMaxSigma}) {
    DiscreteGaussian gaussian(sigma, words(sigma));
    constexpr int kDraws = 100000;
    double first = 0, second = 0, fourth = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double x = static_cast<double>(gaussian.draw()) / static_cast<double>(sigma);
      first += x / kDraws;
      second += x * x / kDraws;
      fourth += x * x * x * x / kDraws;
    }
    // Four standard errors: of the mean, of the variance (2), of the fourth moment (96).
    EXPECT_NEAR(first, 0, 4 * std::sqrt(1.0 / kDraws));
    EXPECT_NEAR(second, 1, 4 * std::sqrt(2.0 / kDraws));
    EXPECT_NEAR(fourth, 3, 4 * std::sqrt(96.0 / kDraws));
  }
}

TEST(DiscreteGaussianTest, SameBitsSameNoise) {
  DiscreteGaussian a(1000, words(7)), b(1000, words(7)), c(1000, words(8));
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const int64_t drawn = a.draw();
    EXPECT_EQ(drawn, b.draw());
    differs |= drawn != c.draw();
  }
  EXPECT_TRUE(differs);
}

TEST(DiscreteGaussianTest, TheSystemsWordsDiffer) {
  const RandomWords system = system_random_words();
  const RandomWords again = system_random_words();
  std::map<uint64_t, int> seen;
  for (int i = 0; i < 1000; ++i) {
    ++seen[system()];
    ++seen[again()];
  }
  EXPECT_EQ(seen.size(), 2000u);
}

}  // namespace
}  // namespace bitfed
