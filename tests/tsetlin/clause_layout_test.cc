#include "bitfed/tsetlin/clause_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "bitfed/base/hash/random.h"
#include "tests/tsetlin/naive_patches.h"

namespace bitfed {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Literals = std::set<size_t>;

Literals reduced(const ClauseLayout& layout, const Literals& clause) {
  BitMatrix actions(1, layout.literals());
  for (const size_t literal : clause) actions.set(0, literal, true);
  reduce_clauses(layout, &actions);
  Literals result;
  for (size_t literal = 0; literal < layout.literals(); ++literal) {
    if (actions.get(0, literal)) result.insert(literal);
  }
  return result;
}

BooleanizerSpec colours(int levels) {
  BooleanizerSpec spec;
  spec.kind = "colour-thermometer";
  spec.levels = levels;
  return spec;
}

TEST(ClauseLayoutTest, ThermometersInTheOrderOfTheFeatures) {
  // Four y positions, two x positions; two channels of three levels.
  const PatchShape shape = {.height = 5, .width = 2, .planes = 6, .patch_height = 2, .patch_width = 1};
  const ClauseLayout layout = clause_layout(shape, colours(3));
  EXPECT_EQ(layout.features, 3u + 1 + 2 * 6);
  ASSERT_EQ(layout.positions.size(), 2u);
  EXPECT_EQ(layout.positions[0].size, 3u);
  EXPECT_EQ(layout.positions[1].first, 3u);
  EXPECT_EQ(layout.positions[1].size, 1u);
  EXPECT_EQ(layout.channels, 2u);
  std::vector<size_t> firsts;
  for (const Thermometer& thermometer : layout.content) {
    EXPECT_EQ(thermometer.size, 3u);
    firsts.push_back(thermometer.first);
  }
  EXPECT_THAT(firsts, ElementsAre(4, 7, 10, 13));
}

TEST(ClauseLayoutTest, AFlatMachineHasNoPositions) {
  BooleanizerSpec spec;
  spec.kind = "quantile";
  spec.cuts = {{1, 2}, {}, {5}};
  const ClauseLayout layout =
      clause_layout({.height = 1, .width = 1, .planes = 3, .patch_height = 1, .patch_width = 1}, spec);
  EXPECT_THAT(layout.positions, IsEmpty());
  ASSERT_EQ(layout.content.size(), 2u);
  EXPECT_EQ(layout.content[1].first, 2u);
}

TEST(ReduceClausesTest, ByHand) {
  // y > 0, y > 1, y > 2, then one pixel: features 0 … 3, negations 4 … 7.
  const ClauseLayout layout =
      clause_layout({.height = 4, .width = 1, .planes = 1, .patch_height = 1, .patch_width = 1}, {});
  EXPECT_THAT(reduced(layout, {}), IsEmpty());
  EXPECT_THAT(reduced(layout, {0, 2, 3}), ElementsAre(2, 3));
  EXPECT_THAT(reduced(layout, {5, 6}), ElementsAre(5));
  EXPECT_THAT(reduced(layout, {0, 6, 5}), ElementsAre(0, 5));
  EXPECT_THAT(reduced(layout, {1, 5}), ElementsAre(0, 4));     // y > 1 and not
  EXPECT_THAT(reduced(layout, {2, 4, 3}), ElementsAre(0, 4));  // y > 2 and not y > 0
  EXPECT_THAT(reduced(layout, {3, 7}), ElementsAre(0, 4));     // the pixel and not
  EXPECT_THAT(reduced(layout, {0, 4}), ElementsAre(0, 4));
}

// Whether the clause matches, for every patch of every image.
std::vector<bool> matches(const std::vector<std::vector<bool>>& patches, const Literals& clause) {
  std::vector<bool> result;
  for (const auto& patch : patches)
    result.push_back(naive_match(patch, [&](size_t literal) { return clause.contains(literal); }));
  return result;
}

std::vector<std::vector<bool>> all_patches(const BitImages& images, const PatchShape& shape) {
  std::vector<std::vector<bool>> result;
  for (size_t sample = 0; sample < images.count; ++sample) {
    for (auto& patch : naive_patches(images, sample, shape)) result.push_back(std::move(patch));
  }
  return result;
}

// All clauses of a small machine at all patches of all images: nothing changes, and no literal is left that
// could go.
TEST(ReduceClausesTest, EveryClauseAtEveryImage) {
  Dataset dataset;
  dataset.height = dataset.width = 2;
  dataset.channels = 1;
  for (int number = 0; number < 81; ++number) {
    for (int pixel = 0, rest = number; pixel < 4; ++pixel, rest /= 3)
      dataset.pixels.push_back(static_cast<uint8_t>(rest % 3 * 120));
    dataset.labels.push_back(0);
  }
  const PatchShape shape = {.height = 2, .width = 2, .planes = 2, .patch_height = 1, .patch_width = 1};
  const ClauseLayout layout = clause_layout(shape, colours(2));
  ASSERT_EQ(layout.literals(), 8u);
  const auto patches = all_patches(booleanize(colours(2), dataset), shape);
  for (size_t number = 0; number < 256; ++number) {
    Literals clause;
    for (size_t literal = 0; literal < 8; ++literal) {
      if ((number >> literal & 1) != 0) clause.insert(literal);
    }
    const Literals less = reduced(layout, clause);
    ASSERT_EQ(matches(patches, less), matches(patches, clause)) << number;
    ASSERT_EQ(less.empty(), clause.empty()) << number;
    for (const size_t literal : less) {
      Literals lesser = less;
      lesser.erase(literal);
      ASSERT_NE(matches(patches, lesser), matches(patches, clause)) << number << " " << literal;
    }
  }
}

Dataset random_samples(const BooleanizerSpec& spec, RandomStream& random) {
  Dataset dataset;
  for (int i = 0; i < 12; ++i) dataset.labels.push_back(0);
  if (spec.kind == "quantile") {
    dataset.columns = {"a", "b", "c"};
    for (size_t i = 0; i < 12 * 3; ++i) dataset.values.push_back(static_cast<float>(random.uniform()));
  } else {
    dataset.height = 6;
    dataset.width = 5;
    dataset.channels = 3;
    for (size_t i = 0; i < 12 * 90; ++i) dataset.pixels.push_back(static_cast<uint8_t>(random.below(256)));
  }
  return dataset;
}

// Clauses with as many literals as a density says, which match now and then: the literals are drawn from
// those that hold at one patch, but for a few.
Literals random_clause(const std::vector<bool>& patch, RandomStream& random) {
  const double density = random.uniform() * random.uniform();
  const double stray = random.below(4) == 0 ? 0.02 : 0;
  Literals clause;
  for (size_t literal = 0; literal < patch.size(); ++literal) {
    if (random.uniform() < (patch[literal] ? density : stray)) clause.insert(literal);
  }
  return clause;
}

TEST(ReduceClausesTest, RandomClausesOfEveryBooleanizer) {
  BooleanizerSpec quantile;
  quantile.kind = "quantile";
  quantile.cuts = {{0.2f, 0.4f, 0.6f}, {0.5f}, {0.1f, 0.9f}};
  BooleanizerSpec gaussian;
  gaussian.kind = "adaptive-gaussian";
  gaussian.window = 3;
  RandomStream random({3, "reduce"});
  for (const BooleanizerSpec& spec : {BooleanizerSpec(), gaussian, colours(8), colours(1), quantile}) {
    const Dataset dataset = random_samples(spec, random);
    const BitImages images = booleanize(spec, dataset);
    const bool table = spec.kind == "quantile";
    const PatchShape shape = {.height = images.height,
                              .width = images.width,
                              .planes = images.planes,
                              .patch_height = table ? 1u : 3u,
                              .patch_width = table ? 1u : 2u};
    const ClauseLayout layout = clause_layout(shape, spec);
    const auto patches = all_patches(images, shape);
    size_t matched = 0;
    size_t dropped = 0;
    for (int i = 0; i < 300; ++i) {
      const Literals clause =
          random_clause(patches[random.below(static_cast<uint32_t>(patches.size()))], random);
      const Literals less = reduced(layout, clause);
      const std::vector<bool> found = matches(patches, clause);
      ASSERT_EQ(matches(patches, less), found) << spec.kind;
      ASSERT_EQ(less.empty(), clause.empty());
      ASSERT_EQ(reduced(layout, less), less);
      matched += static_cast<size_t>(std::count(found.begin(), found.end(), true));
      dropped += clause.size() - std::min(clause.size(), less.size());
    }
    EXPECT_GT(matched, 0u) << spec.kind;
    EXPECT_GT(dropped, 0u) << spec.kind;
  }
}

}  // namespace
}  // namespace bitfed
