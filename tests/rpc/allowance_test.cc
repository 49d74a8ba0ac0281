#include "bitfed/rpc/server/allowance.h"

#include <gtest/gtest.h>

namespace bitfed {
namespace {

TEST(AllowanceTest, TakesAndFills) {
  const Allowance::Time start;
  const auto at = [&](double seconds) {
    return start +
           std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
  };
  Allowance allowance({.max = 2, .per_second = 0.5}, start);
  EXPECT_TRUE(allowance.is_full(start));
  EXPECT_TRUE(allowance.take(start));
  EXPECT_TRUE(allowance.take(start));
  EXPECT_FALSE(allowance.take(at(1)));
  EXPECT_TRUE(allowance.take(at(2.5)));
  EXPECT_FALSE(allowance.take(at(3)));
  allowance.give_back(at(3));
  EXPECT_TRUE(allowance.take(at(3)));
  EXPECT_FALSE(allowance.take(at(3)));
  for (int i = 0; i < 9; ++i) allowance.give_back(at(3));  // never more than there is at most
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(allowance.take(at(3)));
  EXPECT_FALSE(allowance.take(at(3)));
  EXPECT_FALSE(allowance.is_full(at(4)));
  EXPECT_TRUE(allowance.is_full(at(100)));
}

}  // namespace
}  // namespace bitfed
