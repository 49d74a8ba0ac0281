#include "bitfed/run/same_recipe.h"

#include <gtest/gtest.h>

namespace bitfed {
namespace {

TEST(SameRecipe, RenamedKeysAreTheSame) {
  const char* const earlier =
      "rounds = 3\n\n[federation]\nleast_answers = 2\nmost_samples = 600\nquorum = 1.0\n\n[model]\nname = \"tm\"\n";
  const char* const now =
      "rounds = 3\n\n[federation]\nmax_samples = 600\nmin_answers = 2\nquorum = 1.0\n\n[model]\nname = \"tm\"\n";
  EXPECT_TRUE(same_recipe(earlier, earlier));
  EXPECT_TRUE(same_recipe(earlier, now));
  EXPECT_TRUE(same_recipe(now, earlier));
}

TEST(SameRecipe, AnythingElseIsAnother) {
  EXPECT_FALSE(same_recipe("[federation]\nleast_answers = 2\n", "[federation]\nmin_answers = 3\n"));
  EXPECT_FALSE(same_recipe("[federation]\nleast_answers = 2\n", "[federation]\n"));
  EXPECT_FALSE(same_recipe("[a]\nx = 1\n[b]\n", "[a]\n[b]\nx = 1\n"));
  EXPECT_FALSE(same_recipe("x = 1\nx = 1\n", "x = 1\n"));
  EXPECT_FALSE(same_recipe("least_answers_too = 2\n", "min_answers_too = 2\n"));
}

}  // namespace
}  // namespace bitfed
