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

TEST(DatasetTest, BorrowedValuesAreReadWhereTheyAre) {
  auto memory = std::make_shared<std::vector<float>>(std::vector<float>{10, 11, 12, 13});
  Dataset data = table();
  data.values = Elements<float>::borrowed(*memory, memory);
  const Dataset copy = data;
  EXPECT_EQ(copy.values.data(), memory->data());
  EXPECT_EQ(copy.values, table().values);
  // Neighbouring rows stay where they are, others cannot.
  EXPECT_EQ(subset(data, std::vector<uint32_t>{1, 2}).values.data(), memory->data() + 1);
  EXPECT_THAT(subset(data, std::vector<uint32_t>{1, 2}).values, ElementsAre(11, 12));
  EXPECT_THAT(subset(data, std::vector<uint32_t>{1, 3}).values, ElementsAre(11, 13));
  EXPECT_THAT(subset(data, {}).values, IsEmpty());
  // A change is a change of one's own values.
  data.values.push_back(14);
  EXPECT_THAT(data.values, ElementsAre(10, 11, 12, 13, 14));
  EXPECT_THAT(copy.values, ElementsAre(10, 11, 12, 13));
  EXPECT_EQ(memory.use_count(), 2);  // this one, and the copy's
}

TEST(DatasetTest, BorrowedMemoryIsKept) {
  std::weak_ptr<std::vector<uint8_t>> memory;
  Elements<uint8_t> part;
  {
    const auto owner = std::make_shared<std::vector<uint8_t>>(3, uint8_t{7});
    memory = owner;
    part = Elements<uint8_t>::borrowed(*owner, owner).part(1, 2);
  }
  EXPECT_FALSE(memory.expired());
  EXPECT_THAT(part, ElementsAre(7, 7));
  part = {};
  EXPECT_TRUE(memory.expired());
}

}  // namespace
}  // namespace bitfed
