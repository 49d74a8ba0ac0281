#include "bitfed/federated/privacy/accountant.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/base/error_text.h"

namespace bitfed {
namespace {

constexpr double kDelta = 1e-5;

// Values of dp_accounting 0.6, RDP at its default orders.
TEST(AccountantTest, AgreesWithAnotherImplementation) {
  struct Case {
    double noise, sampling;
    uint64_t rounds;
    double epsilon;
  };
  for (const Case& c : {Case{1, 1, 1, 4.73}, Case{1, .1, 100, 7.90}, Case{1, .1, 500, 18.16},
                        Case{2, .1, 100, 2.58}, Case{2, .1, 500, 6.03}, Case{4, 1, 100, 14.13},
                        Case{8, 1, 100, 6.12}, Case{1, .01, 500, 1.65}, Case{5, 1, 1, .79}}) {
    EXPECT_NEAR(epsilon_of({c.noise, c.sampling}, c.rounds, kDelta), c.epsilon, 0.01 * c.epsilon)
        << c.noise << " " << c.sampling << " " << c.rounds;
  }
}

// Order 2 of the sampled Gaussian in closed form: (1 - q)^2 + 2 q (1 - q) + q^2 exp(1 / sigma^2). With a
// delta near 1 this order is the best one; with so little noise orders between integers are not looked at.
TEST(AccountantTest, SecondOrderByHand) {
  const double noise = 0.25;
  const double q = 0.25;
  const double moment = (1 - q) * (1 - q) + 2 * q * (1 - q) + q * q * std::exp(1 / (noise * noise));
  const double delta = 0.2;
  const double by_hand = std::log(moment) + std::log(0.5) - std::log(2 * delta);
  EXPECT_NEAR(epsilon_of({noise, q}, 1, delta), by_hand, 1e-12);
}

// Orders between integers fit in: at q near 1 the cost is that of the Gaussian without sampling, at every
// order.
TEST(AccountantTest, OrdersBetweenIntegers) {
  for (const double noise : {0.4, 1.0, 3.0}) {
    for (const double delta : {0.3, 0.01, 1e-5}) {
      const double whole = epsilon_of({noise, 1}, 1, delta);
      EXPECT_NEAR(epsilon_of({noise, 1 - 1e-9}, 1, delta), whole, 1e-6 * (1 + whole))
          << noise << " " << delta;
    }
  }
}

TEST(AccountantTest, NothingReleasedCostsNothing) {
  EXPECT_EQ(epsilon_of({1, .1}, 0, kDelta), 0);
}

TEST(AccountantTest, MoreNoiseLessSamplingAndFewerRoundsCostLess) {
  EXPECT_LT(epsilon_of({1.1, .1}, 100, kDelta), epsilon_of({1, .1}, 100, kDelta));
  EXPECT_LT(epsilon_of({1, .09}, 100, kDelta), epsilon_of({1, .1}, 100, kDelta));
  EXPECT_LT(epsilon_of({1, .1}, 99, kDelta), epsilon_of({1, .1}, 100, kDelta));
  EXPECT_NEAR(epsilon_of({1, 1 - 1e-12}, 10, kDelta), epsilon_of({1, 1}, 10, kDelta), 1e-6);
}

TEST(AccountantTest, NoiseForATargetIsTheSmallest) {
  for (const double epsilon : {0.5, 1.0, 8.0}) {
    const double noise = noise_for(epsilon, kDelta, .1, 100);
    EXPECT_LE(epsilon_of({noise, .1}, 100, kDelta), epsilon);
    EXPECT_GT(epsilon_of({noise - 0.001, .1}, 100, kDelta), epsilon);
  }
  EXPECT_NE(error_text([] { noise_for(1e-9, kDelta, 1, 1000000); }).find("10000"), std::string::npos);
}

TEST(AccountantTest, RoundsWithinABudget) {
  const SampledGaussian release{1, .1};
  const uint64_t rounds = releases_within(5, kDelta, release, 1000);
  EXPECT_LE(epsilon_of(release, rounds, kDelta), 5);
  EXPECT_GT(epsilon_of(release, rounds + 1, kDelta), 5);
  EXPECT_EQ(releases_within(5, kDelta, release, 7), 7u);
  EXPECT_EQ(releases_within(0.01, kDelta, {1, 1}, 100), 0u);
}

}  // namespace
}  // namespace bitfed
