#include "bitfed/tsetlin/machine/compiled_clauses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "bitfed/bits/kernels.h"
#include "tests/tsetlin/naive_scores.h"

namespace bitfed {
namespace {

using testing::ElementsAre;

class CompiledClausesTest : public testing::TestWithParam<PatchShape> {};

INSTANTIATE_TEST_SUITE_P(Shapes, CompiledClausesTest,
                         testing::Values(PatchShape{8, 8, 1, 3, 3}, PatchShape{26, 26, 1, 3, 3},
                                         PatchShape{5, 6, 4, 2, 3}, PatchShape{3, 70, 1, 2, 4},
                                         PatchShape{6, 6, 1, 1, 1}, PatchShape{6, 7, 1, 6, 7},
                                         PatchShape{1, 1, 90, 1, 1}, PatchShape{4, 5, 3, 4, 5}));

TEST_P(CompiledClausesTest, SumsAreThoseOfTheDefinitionOnEveryUnit) {
  const PatchShape shape = GetParam();
  RandomStream random({.seed = 1, .purpose = "compiled clauses test"});
  const BitImages images = random_images(shape.is_flat() ? 1100 : 20, shape, random);
  const TsetlinMember member = random_member({}, shape, 3, 40, random);
  const std::vector<int64_t> expected = naive_sums(member, 3, images);
  EXPECT_NE(std::vector<int64_t>(expected.begin(), expected.begin() + 3),
            std::vector<int64_t>(member.bias.begin(), member.bias.end()));  // clauses do fire
  const char* before = kernels().name;
  for (const Kernels* unit : supported_kernels()) {
    force_kernels(unit->name);
    CompiledClauses compiled(member, 3);
    CompiledClauses again(member, 3);
    // Twice: the order in which literals are tried changes from image to image, the sums do not.
    for (int time = 0; time < 2; ++time) {
      EXPECT_THAT(class_sums(images, {&compiled, &again}), testing::Each(expected)) << unit->name;
    }
  }
  force_kernels(before);
}

TEST(CompiledClauses, KeepsOnlyClausesThatCanFireAndMatter) {
  TsetlinMember member;
  member.shape = {1, 2, 1, 1, 2};
  member.clauses = 2;
  member.actions = BitMatrix(4, 4);
  member.actions.set(0, 0, true);  // class 0: two literals of weight 3
  member.actions.set(0, 3, true);
  member.weights = {3, 7, 0, -2};  // an empty clause of weight 7
  member.actions.set(2, 1, true);  // class 1: weight 0
  member.actions.set(3, 1, true);  // class 1: one literal of weight -2
  member.bias = {5, 6};
  CompiledClauses compiled(member, 2);
  EXPECT_EQ(included_literals(member), 3u);
  BitImages images(2, 1, 2, 1);
  images.bits.set(0, 0, true);  // (1, 0): x0 and not x1
  images.bits.set(1, 1, true);  // (0, 1): x1
  EXPECT_THAT(class_sums(images, {&compiled}), ElementsAre(ElementsAre(8, 6, 5, 4)));
}

// A clause that demands a literal and its negation, or a place that there is not, never fires.
TEST(CompiledClauses, ContradictionsAreSilent) {
  TsetlinMember member;
  member.shape = {3, 3, 1, 1, 1};
  const size_t features = member.shape.features();
  member.clauses = 3;
  member.actions = BitMatrix(3, member.shape.literals());
  member.actions.set(0, 4, true);  // the pixel, and not the pixel
  member.actions.set(0, features + 4, true);
  member.actions.set(1, 1, true);  // y > 1 and not y > 0
  member.actions.set(1, features, true);
  member.actions.set(2, 1, true);  // y > 1
  member.weights = {1, 10, 100};
  member.bias = {0};
  CompiledClauses compiled(member, 1);
  EXPECT_THAT(class_sums(BitImages(1, 3, 3, 1), {&compiled}), ElementsAre(ElementsAre(100)));
}

TEST(CompiledClauses, SumsOfLargeWeightsDoNotOverflow) {
  TsetlinMember member;
  member.shape = {1, 1, 1, 1, 1};
  member.clauses = 3;
  member.actions = BitMatrix(3, 2);
  for (size_t row = 0; row < 3; ++row) member.actions.set(row, 1, true);  // not x0
  member.weights = {INT32_MAX, INT32_MAX, INT32_MAX};
  member.bias = {INT32_MAX};
  CompiledClauses compiled(member, 1);
  const BitImages images(1, 1, 1, 1);
  EXPECT_THAT(class_sums(images, {&compiled}), ElementsAre(ElementsAre(4 * int64_t{INT32_MAX})));
}

}  // namespace
}  // namespace bitfed
