#include "bitfed/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bitfed {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Dataset table() {
  Dataset data;
  data.columns = {"x"};
  data.class_names = {"no", "yes"};
  data.group_names = {"ann", "bob"};
  data.values = {10, 11, 12, 13};
  data.labels = {0, 1, 0, 1};
  data.groups = {0, 0, 1, 1};
  return data;
}

TEST(DatasetTest, ASubsetKeepsTheGroups) {
  const std::vector<uint32_t> chosen = {3, 0};
  const Dataset some = subset(table(), chosen);
  EXPECT_THAT(some.values, ElementsAre(13, 10));
  EXPECT_THAT(some.labels, ElementsAre(1, 0));
  EXPECT_THAT(some.groups, ElementsAre(1, 0));
  EXPECT_THAT(some.group_names, ElementsAre("ann", "bob"));
}

TEST(DatasetTest, AClientsSamplesHaveNoGroups) {
  const std::vector<uint32_t> chosen = {3, 0};
  const Dataset some = samples_at(table(), chosen);
  EXPECT_THAT(some.values, ElementsAre(13, 10));
  EXPECT_THAT(some.labels, ElementsAre(1, 0));
  EXPECT_THAT(some.class_names, ElementsAre("no", "yes"));
  EXPECT_THAT(some.groups, IsEmpty());
  EXPECT_THAT(some.group_names, IsEmpty());
}

}  // namespace
}  // namespace bitfed
