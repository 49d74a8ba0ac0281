#include "bitfed/federated/arithmetic/binarised_update.h"

#include <gtest/gtest.h>

#include <cmath>

namespace bitfed {
namespace {

using Numbers = std::vector<float>;

Numbers numbers(const BinarisedUpdate& update) {
  return {update.update().begin(), update.update().end()};
}

// A first step of rate 1 from zeros makes the update what is asked for.
BinarisedUpdate binary(const Numbers& m) {
  BinarisedUpdate update(m.size());
  Numbers down(m);
  for (float& number : down) number = -number;
  update.descend(down, 1);
  update.binarise();
  return update;
}

TEST(BinarisedUpdateTest, RealAtFirst) {
  BinarisedUpdate update(2);
  update.descend(Numbers{0.5f, -0.25f}, 0.1f);
  EXPECT_FLOAT_EQ(update.value(0), -0.05f);
  EXPECT_FLOAT_EQ(update.value(1), 0.025f);
}

TEST(BinarisedUpdateTest, AlphaIsTheMeanMagnitudeClamped) {
  EXPECT_FLOAT_EQ(binary({0.01f, -0.03f}).alpha(), 0.02f);
  EXPECT_FLOAT_EQ(binary({0, 0}).alpha(), 5e-4f);
  EXPECT_FLOAT_EQ(binary({1, -3}).alpha(), 5e-2f);
}

// alpha = 0.02: 0.01 is +alpha with probability 3/4, -0.03 never, 0.02 always, -0.02 never.
TEST(BinarisedUpdateTest, SignsAtRandomWithTheRightMean) {
  BinarisedUpdate update = binary({0.01f, -0.03f, 0.02f, -0.02f});
  RandomStream random({1, "signs"});
  int positive[4] = {};
  for (int draw = 0; draw < 4000; ++draw) {
    update.draw(&random);
    for (size_t i = 0; i < 4; ++i) {
      positive[i] += update.positive(i) ? 1 : 0;
      EXPECT_FLOAT_EQ(update.value(i), update.positive(i) ? 0.02f : -0.02f);
    }
  }
  EXPECT_NEAR(positive[0], 3000, 110);  // four deviations
  EXPECT_EQ(positive[1], 0);
  EXPECT_EQ(positive[2], 4000);
  EXPECT_EQ(positive[3], 0);
}

// With alpha 0.02 and gradients 1, 2, 4: inside, m moves; -0.04 is beyond and stays. The slope of alpha is
// 1 (2b - (0.5 + 1)) + 2 (-1) + 4 (2b - (0 + 1)), and a's 6 alpha times that.
TEST(BinarisedUpdateTest, AStepByHand) {
  BinarisedUpdate update = binary({0.01f, -0.05f, 0.0f});
  ASSERT_FLOAT_EQ(update.alpha(), 0.02f);
  RandomStream random({2, "signs"});
  update.draw(&random);
  const double of_alpha = (update.positive(0) ? 2 : 0) - 1.5 - 2 + 4 * ((update.positive(2) ? 2 : 0) - 1.0);
  update.descend(Numbers{1, 2, 4}, 0.001f);
  const Numbers after = numbers(update);
  EXPECT_FLOAT_EQ(after[0], 0.009f);
  EXPECT_FLOAT_EQ(after[1], -0.05f);
  EXPECT_FLOAT_EQ(after[2], -0.004f);
  EXPECT_NEAR(update.alpha(), 0.02 * std::exp(6 * (-0.001 * of_alpha * 6 * 0.02)), 1e-7);
}

}  // namespace
}  // namespace bitfed
