#include "bitfed/data/conform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bitfed/data/formats/csv.h"
#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Dataset prototype() {
  Dataset table;
  table.columns = {"height", "weight"};
  table.class_names = {"cat", "cow", "dog"};
  return table;
}

TEST(Conform, LabelsCountInTheOthersClasses) {
  // Columns in another order, one that nobody asked for and that is no number, a class that is missing.
  const Dataset own = parse_csv("weight,note,kind,height\n1,x,dog,2\n3,y,cat,4\n", "own.csv",
                                {.label = "kind", .person = "", .ignore = {}, .only = {"height", "weight"}});
  const Dataset samples = conform(own, prototype());
  EXPECT_THAT(samples.values, ElementsAre(2, 1, 4, 3));
  EXPECT_THAT(samples.labels, ElementsAre(2, 0));
  EXPECT_THAT(samples.class_names, ElementsAre("cat", "cow", "dog"));
}

TEST(Conform, WhatDoesNotFit) {
  Dataset own = prototype();
  own.name = "own";
  own.class_names = {"cat", "cwo"};
  EXPECT_THAT(error_text([&] { conform(own, prototype()); }),
              HasSubstr("class 'cwo' is not a class of the federation (did you mean 'cow'?)"));
  own = prototype();
  own.columns = {"weight", "height"};
  EXPECT_THAT(error_text([&] { conform(own, prototype()); }),
              HasSubstr("found columns weight, height, expected height, weight"));
  Dataset images;
  images.height = 8;
  images.width = 8;
  images.channels = 1;
  Dataset larger = images;
  larger.width = 9;
  EXPECT_THAT(error_text([&] { conform(larger, images); }),
              HasSubstr("found images of 8 x 9 x 1, expected 8 x 8 x 1"));
}

TEST(Conform, AColumnThatIsAskedForMustBeThere) {
  EXPECT_THAT(error_text([] {
                parse_csv("a,label\n1,x\n", "own.csv",
                          {.label = "label", .person = "", .ignore = {}, .only = {"b"}});
              }),
              HasSubstr("has no column 'b'"));
}

}  // namespace
}  // namespace bitfed
