#include "bitfed/base/text_difference.h"

#include <gtest/gtest.h>

namespace bitfed {
namespace {

TEST(TextDifferenceTest, FirstLineThatDiffers) {
  EXPECT_EQ(first_difference("a = 1\nb = 2\nc = 3\n", "a = 1\nb = 4\nc = 5\n"),
            "'b = 2' there, 'b = 4' here");
}

TEST(TextDifferenceTest, OneTextIsLonger) {
  EXPECT_EQ(first_difference("a\nb\n", "a\n"), "'b' there, nothing here");
  EXPECT_EQ(first_difference("a", "a\nb"), "nothing there, 'b' here");
  EXPECT_EQ(first_difference("", "a"), "nothing there, 'a' here");
}

TEST(TextDifferenceTest, None) {
  EXPECT_EQ(first_difference("", ""), "no difference");
  EXPECT_EQ(first_difference("a\nb\n", "a\nb\n"), "no difference");
}

}  // namespace
}  // namespace bitfed
