#include "bitfed/federated/arithmetic/kronecker_update.h"

#include <gtest/gtest.h>

#include <cmath>

namespace bitfed {
namespace {

KroneckerUpdate update_of(size_t count, double ratio, uint64_t seed = 1) {
  return {count, ratio, RandomStream({seed, "factors"})};
}

// The values for one factor at 1 and the others at 0 are the factor's fixed partner.
std::vector<float> values_of(KroneckerUpdate update, size_t factor, float value = 1) {
  update.factors().assign(update.factors().size(), 0);
  update.factors()[factor] = value;
  std::vector<float> values;
  update.values(&values);
  return values;
}

// ratio 1/32 of CNN4's second to fourth layer: ceil(n / 4096) blocks of 8 x 8, but for rounding.
TEST(KroneckerUpdateTest, Sizes) {
  const KroneckerUpdate second = update_of(18432, 1.0 / 32);
  EXPECT_EQ(second.blocks(), 5u);
  EXPECT_EQ(second.size(), 8u);  // (18432 / 5)^(1/4) = 7.79
  EXPECT_EQ(second.factors().size(), 2u * 5 * 64);
  const KroneckerUpdate fourth = update_of(294912, 1.0 / 32);
  EXPECT_EQ(fourth.blocks(), 72u);
  EXPECT_EQ(fourth.size(), 8u);
  EXPECT_EQ(fourth.factors().size(), 294912u / 32);
  EXPECT_EQ(update_of(1, 1).size(), 1u);
}

// 20 numbers at ratio 0.9: ceil(0.81 * 5) = 5 blocks of z = ceil(4^(1/4)) = 2: of 80 places 20 are used.
TEST(KroneckerUpdateTest, IsTheSumOfTwoProducts) {
  KroneckerUpdate update = update_of(20, 0.9);
  ASSERT_EQ(update.blocks(), 5u);
  ASSERT_EQ(update.size(), 2u);
  // Fixed partners, read off: right[j][n] at 1 shows fixed_left at rows i * 2 + j, columns m * 2 + n.
  const auto fixed_left = [&](size_t i, size_t m) { return values_of(update, 20)[i * 2 * 4 + m * 2]; };
  const auto fixed_right = [&](size_t j, size_t n) { return values_of(update, 0)[j * 4 + n]; };
  for (size_t i = 0; i < 40; ++i) update.factors()[i] = static_cast<float>(i) / 10;
  std::vector<float> values;
  update.values(&values);
  for (size_t row = 0; row < 4; ++row) {
    for (size_t column = 0; column < 4; ++column) {
      const float left = update.factors()[row / 2 * 2 + column / 2];
      const float right = update.factors()[20 + row % 2 * 2 + column % 2];
      EXPECT_NEAR(values[row * 4 + column],
                  fixed_left(row / 2, column / 2) * right + left * fixed_right(row % 2, column % 2), 1e-5);
    }
  }
  EXPECT_LE(std::fabs(fixed_left(1, 1)), 5);
  EXPECT_GT(std::fabs(fixed_left(0, 0) - fixed_left(1, 1)), 0);
}

// The update is linear in the factors, so its gradient is the transposed map: exact by differences.
TEST(KroneckerUpdateTest, DescendsAlongTheGradient) {
  KroneckerUpdate update = update_of(30, 0.7);
  RandomStream random({2, "gradient"});
  std::vector<float> gradient(30);
  for (float& number : gradient) number = static_cast<float>(random.normal());
  update.descend(gradient, 0.5f);
  for (size_t f = 0; f < update.factors().size(); ++f) {
    const std::vector<float> along = values_of(update, f);
    double expected = 0;
    for (size_t i = 0; i < 30; ++i) expected -= 0.5 * gradient[i] * along[i];
    EXPECT_NEAR(update.factors()[f], expected, 1e-4) << f;
  }
}

TEST(KroneckerUpdateTest, StartsAtZeroFromItsSeed) {
  std::vector<float> values;
  update_of(100, 0.5).values(&values);
  EXPECT_EQ(values, std::vector<float>(100, 0));
  EXPECT_EQ(values_of(update_of(100, 0.5, 3), 0), values_of(update_of(100, 0.5, 3), 0));
  EXPECT_NE(values_of(update_of(100, 0.5, 3), 0), values_of(update_of(100, 0.5, 4), 0));
}

}  // namespace
}  // namespace bitfed
