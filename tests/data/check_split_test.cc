#include "bitfed/data/check_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

Dataset table(size_t samples) {
  Dataset data;
  data.name = "mine";
  data.columns = {"a", "b"};
  data.values.assign(2 * samples, 1);
  data.labels.assign(samples, 1);
  data.class_names = {"no", "yes"};
  data.groups.assign(samples, 0);
  data.group_names = {"ann"};
  return data;
}

std::string refusal(const std::function<void(DataSplit&)>& spoil) {
  DataSplit split{table(3), table(2)};
  spoil(split);
  return error_text([&] { check_split(split); });
}

TEST(CheckSplit, TakesWhatFits) {
  EXPECT_EQ(refusal([](DataSplit&) {}), "");
  EXPECT_EQ(refusal([](DataSplit& split) { split.test = table(0); }), "");
}

TEST(CheckSplit, NamesWhatDoesNotFit) {
  EXPECT_EQ(refusal([](DataSplit& split) { split.train.values.own().pop_back(); }),
            "mine: values: found 5, expected 6 for 3 samples");
  EXPECT_EQ(refusal([](DataSplit& split) { split.train.pixels.push_back(0); }),
            "mine: pixels: found 1, expected 0 for 3 samples");
  EXPECT_EQ(refusal([](DataSplit& split) { split.test.labels[1] = 2; }),
            "mine: labels: found 2, expected less than 2");
  EXPECT_EQ(refusal([](DataSplit& split) { split.train.groups[0] = 1; }),
            "mine: groups: found 1, expected less than 1");
  EXPECT_EQ(refusal([](DataSplit& split) { split.train.groups.pop_back(); }),
            "mine: groups: found 2, expected 3 for 3 samples");
  EXPECT_THAT(
      refusal([](DataSplit& split) { split.train.height = split.train.width = split.train.channels = 1; }),
      HasSubstr("expected either columns or images"));
  EXPECT_THAT(refusal([](DataSplit& split) { split.test.class_names = {"yes", "no"}; }), HasSubstr("other"));
  EXPECT_THAT(refusal([](DataSplit& split) { split.test.columns = {"b", "a"}; }), HasSubstr("other"));
}

TEST(CheckSplit, NamesAreDistinctAndOnOneLine) {
  EXPECT_EQ(refusal([](DataSplit& split) {
              split.train.class_names = {"no", "no"};
            }),
            "mine: classes: found 'no' twice, expected distinct names");
  EXPECT_EQ(refusal([](DataSplit& split) {
              split.train.class_names = {"", "no"};
            }),
            "mine: classes: found one without a name, expected a name for each");
  EXPECT_EQ(refusal([](DataSplit& split) {
              split.train.class_names = {"no", std::string("a\0b", 3)};
            }),
            "mine: classes: found \"a\\x00b\", expected names without control characters");
  EXPECT_EQ(refusal([](DataSplit& split) {
              split.train.columns = {"a", "a"};
            }),
            "mine: columns: found 'a' twice, expected distinct names");
  EXPECT_EQ(refusal([](DataSplit& split) { split.train.group_names = {""}; }),
            "mine: people: found one without a name, expected a name for each");
  EXPECT_EQ(refusal([](DataSplit& split) { split.train.group_names = {"a\nn"}; }),
            "mine: people: found \"a\\nn\", expected names without control characters");
}

}  // namespace
}  // namespace bitfed
