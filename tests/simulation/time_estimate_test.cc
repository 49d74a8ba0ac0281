#include "bitfed/simulation/time_estimate.h"

#include <gtest/gtest.h>

namespace bitfed {
namespace {

TEST(TimeEstimate, NothingMeasuredNothingSaid) {
  TimeEstimate estimate;
  estimate.plan("a", 100);
  EXPECT_FALSE(estimate.seconds_left());
  estimate.skip("a", 50);
  EXPECT_FALSE(estimate.seconds_left());
}

TEST(TimeEstimate, KindsHaveTheirOwnRates) {
  TimeEstimate estimate;
  estimate.plan("a", 100);
  estimate.plan("b", 100);
  estimate.finish("a", 20, 10);  // half a second a unit, for b too as long as b is unknown
  EXPECT_DOUBLE_EQ(*estimate.seconds_left(), 40 + 50);
  estimate.finish("b", 10, 20);  // two seconds a unit
  EXPECT_DOUBLE_EQ(*estimate.seconds_left(), 40 + 180);
  estimate.skip("b", 90);
  EXPECT_DOUBLE_EQ(*estimate.seconds_left(), 40);
  estimate.finish("a", 80, 30);
  EXPECT_DOUBLE_EQ(*estimate.seconds_left(), 0);
}

}  // namespace
}  // namespace bitfed
