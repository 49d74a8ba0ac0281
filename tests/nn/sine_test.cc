#include "bitfed/nn/kernels/sine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "bitfed/base/hash/random.h"

namespace bitfed {
namespace {

// The error of `found` in units in the last place of the float nearest to `exact`.
double ulps(float found, long double exact) {
  const float nearest = std::fabs(static_cast<float>(exact));
  const float unit = std::nextafter(nearest, std::numeric_limits<float>::infinity()) - nearest;
  return static_cast<double>(std::fabs(static_cast<long double>(found) - exact) / unit);
}

// Of both functions at one angle.
double error_at(float angle) {
  const auto exact = static_cast<long double>(angle);
  return std::max(ulps(sine(angle), std::sin(exact)), ulps(cosine(angle), std::cos(exact)));
}

TEST(SineTest, AsLongDoublesHaveIt) {
  if (sizeof(long double) <= sizeof(double)) GTEST_SKIP() << "long double is no more exact than double";
  RandomStream random({1, "angles"});
  double worst = 0;
  for (int i = 0; i < 1000000; ++i)
    worst = std::max(worst, error_at(static_cast<float>(20000 * (random.uniform() - 0.5))));
  for (int i = 0; i < 1000000; ++i) {  // of every size
    const double size = std::exp2(-140 + 153 * random.uniform());
    worst = std::max(worst, error_at(static_cast<float>(i % 2 == 0 ? size : -size)));
  }
  EXPECT_LT(worst, 0.501);
}

// The floats around multiples of pi / 2, where a sine or cosine is almost 0, and of pi / 4, where the
// quadrants meet.
TEST(SineTest, NearMultiplesOfAQuarterTurn) {
  if (sizeof(long double) <= sizeof(double)) GTEST_SKIP() << "long double is no more exact than double";
  double worst = 0;
  for (int i = -12000; i <= 12000; ++i) {
    float angle = static_cast<float>(i * 0.78539816339744830962);
    for (int step = 0; step < 3; ++step) angle = std::nextafter(angle, -1e9f);
    for (int step = 0; step < 7; ++step, angle = std::nextafter(angle, 1e9f))
      worst = std::max(worst, error_at(angle));
  }
  EXPECT_LT(worst, 0.501);
}

TEST(SineTest, ByHand) {
  EXPECT_EQ(sine(0.0f), 0.0f);
  EXPECT_EQ(cosine(0.0f), 1.0f);
  EXPECT_EQ(cosine(1e-6f), 1.0f);
  EXPECT_EQ(sine(1e-30f), 1e-30f);
  EXPECT_EQ(sine(0.78539816f), 0.70710677f);
  EXPECT_EQ(sine(1.5707964f), 1.0f);
  EXPECT_EQ(sine(-1.5707964f), -1.0f);
  EXPECT_EQ(cosine(3.1415927f), -1.0f);
  for (float angle = -50; angle < 50; angle += 0.37f) {
    EXPECT_EQ(sine(-angle), -sine(angle));
    EXPECT_EQ(cosine(-angle), cosine(angle));
  }
}

TEST(SineTest, FarAndInfiniteAngles) {
  EXPECT_NEAR(sine(1e9f), std::sin(1e9), 1e-6);
  for (const float angle : {1.1e9f, -3e38f}) {
    EXPECT_EQ(sine(angle), 0.0f);
    EXPECT_EQ(cosine(angle), 1.0f);
  }
  for (const float angle : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    EXPECT_TRUE(std::isnan(sine(angle)));
    EXPECT_TRUE(std::isnan(cosine(-angle)));
  }
}

}  // namespace
}  // namespace bitfed
