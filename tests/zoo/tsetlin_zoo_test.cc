#include "bitfed/zoo/tsetlin_zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Dataset images(size_t height, size_t width, size_t channels) {
  Dataset data;
  data.name = "images";
  data.height = height;
  data.width = width;
  data.channels = channels;
  data.class_names = {"a", "b"};
  return data;
}

Dataset table() {
  Dataset data;
  data.name = "table";
  data.columns = {"x", "y"};
  data.class_names = {"a", "b"};
  return data;
}

Config recipe(const std::string& text) {
  return Config::parse(text, "recipe.toml");
}

std::vector<SpecialistSpec> read(const std::string& text, const Dataset& prototype = images(28, 28, 1)) {
  const Config config = recipe(text);
  const std::vector<SpecialistSpec> specialists = read_specialists(config, prototype);
  config.reject_unknown_keys();  // everything in the text was asked for
  return specialists;
}

std::string refusal(const std::string& text, const Dataset& prototype = images(28, 28, 1)) {
  return error_text([&] { read(text, prototype); });
}

TEST(TsetlinZoo, DefaultsOfTheConvolutionalMachine) {
  for (const char* text : {"", "[model]\nname = \"ctm\""}) {
    const auto specialists = read(text);
    ASSERT_EQ(specialists.size(), 1u);
    const SpecialistSpec& spec = specialists[0];
    EXPECT_EQ(spec.booleanizer.kind, "threshold");
    EXPECT_EQ(spec.booleanizer.level, 75);
    EXPECT_THAT(spec.patch, ElementsAre(10, 10));
    EXPECT_EQ(spec.options.clauses, 100u);
    EXPECT_EQ(spec.options.threshold, 1000);
    EXPECT_EQ(spec.options.sensitivity, 5);
    EXPECT_EQ(spec.options.scheme, UpdateScheme::kOneVsAll);
    EXPECT_TRUE(spec.options.weighted);
    EXPECT_TRUE(spec.options.boost);
    EXPECT_EQ(spec.shape(images(28, 28, 1)), (PatchShape{28, 28, 1, 10, 10}));
    EXPECT_EQ(spec.shape(images(32, 30, 3)), (PatchShape{32, 30, 3, 10, 10}));
  }
}

TEST(TsetlinZoo, DefaultsOfTheFlatMachine) {
  const SpecialistSpec spec = read("[model]\nname = \"tm\"").at(0);
  EXPECT_THAT(spec.patch, IsEmpty());
  EXPECT_EQ(spec.options.threshold, 50);
  EXPECT_EQ(spec.options.sensitivity, 10);
  EXPECT_EQ(spec.shape(images(28, 20, 1)), (PatchShape{28, 20, 1, 28, 20}));
  EXPECT_TRUE(spec.shape(images(28, 20, 1)).is_flat());

  SpecialistSpec of_table = read("[model]\nname = \"tm\"", table()).at(0);
  EXPECT_EQ(of_table.booleanizer.kind, "quantile");
  EXPECT_EQ(of_table.booleanizer.bins, 10);
  of_table.booleanizer.cuts = {{1, 2, 3}, {4}};  // fitted later
  EXPECT_EQ(of_table.shape(table()), (PatchShape{1, 1, 4, 1, 1}));
}

TEST(TsetlinZoo, EverythingGiven) {
  const SpecialistSpec spec = read(R"(
[data]
booleanize = { kind = "colour-thermometer", levels = 8 }
[model]
name = "ctm"
clauses = 64
threshold = 400
sensitivity = 2.5
update = "one-vs-one-random"
weighted = false
boost = false
patch = [3, 5]
)",
                                   images(32, 32, 3))
                                  .at(0);
  EXPECT_EQ(spec.booleanizer.kind, "colour-thermometer");
  EXPECT_EQ(spec.booleanizer.levels, 8);
  EXPECT_EQ(spec.options.clauses, 64u);
  EXPECT_EQ(spec.options.threshold, 400);
  EXPECT_EQ(spec.options.sensitivity, 2.5);
  EXPECT_EQ(spec.options.scheme, UpdateScheme::kOneVsOneRandom);
  EXPECT_FALSE(spec.options.weighted);
  EXPECT_FALSE(spec.options.boost);
  EXPECT_THAT(spec.patch, ElementsAre(3, 5));
  EXPECT_EQ(spec.shape(images(32, 32, 3)), (PatchShape{32, 32, 24, 3, 5}));
}

TEST(TsetlinZoo, CompositesHaveTheirOwnBooleanizersAndPatches) {
  const auto specialists = read(R"(
[model]
name = "ctm-composite"
[[model.member]]
clauses = 20
patch = [3, 3]
booleanize = { kind = "colour-thermometer", levels = 4 }
[[model.member]]
threshold = 300
booleanize = { kind = "adaptive-gaussian" }
)",
                                images(32, 32, 3));
  ASSERT_EQ(specialists.size(), 2u);
  EXPECT_EQ(specialists[0].options.clauses, 20u);
  EXPECT_EQ(specialists[0].options.threshold, 1000);
  EXPECT_EQ(specialists[0].booleanizer.kind, "colour-thermometer");
  EXPECT_EQ(specialists[0].shape(images(32, 32, 3)), (PatchShape{32, 32, 12, 3, 3}));
  EXPECT_EQ(specialists[1].options.clauses, 100u);
  EXPECT_EQ(specialists[1].options.threshold, 300);
  EXPECT_EQ(specialists[1].booleanizer.kind, "adaptive-gaussian");
  EXPECT_EQ(specialists[1].shape(images(32, 32, 3)), (PatchShape{32, 32, 3, 10, 10}));
  EXPECT_THAT(refusal("[model]\nname = \"ctm-composite\""),
              AllOf(HasSubstr("model.member"), HasSubstr("[[model.member]]")));
  // What would be a single machine's goes unread, and is told.
  EXPECT_THAT(refusal("[model]\nname = \"ctm-composite\"\nclauses = 10\n[[model.member]]\nclauses = 20"),
              HasSubstr("model.clauses"));
}

TEST(TsetlinZoo, RefusesBadValues) {
  EXPECT_THAT(refusal("[model]\nclauses = 5"),
              AllOf(HasSubstr("recipe.toml"), HasSubstr("line 2"), HasSubstr("model.clauses"),
                    HasSubstr("found 5, expected an even number")));
  for (const char* bad : {"clauses = 0", "clauses = 1", "clauses = 65538", "threshold = 0",
                          "sensitivity = 0.9", "sensitivity = nan", "update = \"all\"", "name = \"cnn\"",
                          "weighted = 1", "patch = [0, 3]", "patch = 3"}) {
    EXPECT_THAT(refusal("[model]\n" + std::string(bad)),
                AllOf(HasSubstr("line 2"),
                      HasSubstr(std::string("model.") + std::string(bad, std::string(bad).find(' ')))))
        << bad;
  }
  EXPECT_THAT(refusal("[model]\npatch = [3]"), HasSubstr("found 1 numbers, expected height and width"));
  EXPECT_THAT(refusal("[model]\npatch = [3, 3, 3]"), HasSubstr("found 3 numbers"));
  EXPECT_THAT(refusal("[model]\nname = \"tm\"\npatch = [3, 3]"),
              HasSubstr("model.patch"));  // means nothing there
  EXPECT_THAT(refusal("[model]\nname = \"ctm-composite\"\n[[model.member]]\nclauses = 7"),
              AllOf(HasSubstr("line 4"), HasSubstr("even number")));
}

TEST(TsetlinZoo, RefusesPatchesLargerThanTheImage) {
  EXPECT_EQ(refusal("[model]\npatch = [28, 28]"), "");
  EXPECT_THAT(
      refusal("[model]\npatch = [29, 3]"),
      AllOf(HasSubstr("model.patch"), HasSubstr("found 29 x 3, expected at most the image's 28 x 28")));
  EXPECT_THAT(refusal("[model]\npatch = [3, 29]"), HasSubstr("found 3 x 29"));
  EXPECT_THAT(refusal("", images(8, 8, 1)), HasSubstr("found 10 x 10"));  // the default, too
  const SpecialistSpec spec = read("").at(0);
  EXPECT_THAT(error_text([&] { spec.shape(images(9, 28, 1)); }),
              HasSubstr("10 x 10 does not fit images of 9 x 28"));
}

TEST(TsetlinZoo, RefusesConvolutionOverTables) {
  EXPECT_THAT(refusal("[model]\nname = \"ctm\"", table()),
              AllOf(HasSubstr("model.name"), HasSubstr("a table has no patches, use name = \"tm\"")));
  EXPECT_THAT(refusal("", table()), HasSubstr("no patches"));
}

TEST(TsetlinZoo, RefusesMoreLiteralsThanCanBeNumbered) {
  const SpecialistSpec spec = read("[model]\nname = \"tm\"").at(0);
  EXPECT_EQ(error_text([&] { spec.shape(images(181, 181, 1)); }), "");  // 65,522 literals
  EXPECT_THAT(error_text([&] { spec.shape(images(182, 181, 1)); }),
              HasSubstr("65884 literals, expected at most 65535"));
}

TEST(TsetlinZoo, RefusesMoreAutomataThanCanBeNumbered) {
  const SpecialistSpec spec = read("[model]\nname = \"tm\"\nclauses = 65536").at(0);
  const size_t classes = images(1, 1, 1).class_count();
  const size_t pixels = INT32_MAX / (size_t{65536} * classes * 2);
  EXPECT_EQ(error_text([&] { spec.shape(images(1, pixels, 1)); }), "");
  EXPECT_THAT(error_text([&] { spec.shape(images(1, pixels + 1, 1)); }),
              AllOf(HasSubstr("65536 clauses of"), HasSubstr("automata, expected at most 2147483647")));
}

}  // namespace
}  // namespace bitfed
