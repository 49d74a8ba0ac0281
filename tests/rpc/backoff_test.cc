#include "bitfed/rpc/device/backoff.h"

#include <gtest/gtest.h>

namespace bitfed {
namespace {

TEST(Backoff, DoublesUpToALimit) {
  EXPECT_EQ(pause_after(0, false).max, 0.25);
  EXPECT_EQ(pause_after(3, false).max, 2);
  EXPECT_EQ(pause_after(1000000, false).max, 20);
  EXPECT_EQ(pause_after(8, true).max, 64);
  EXPECT_EQ(pause_after(1000000, true).max, 300);
  EXPECT_GT(pause_after(0, true).min, 0);
}

}  // namespace
}  // namespace bitfed
