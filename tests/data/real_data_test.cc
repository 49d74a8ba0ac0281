// The built-in data sets as their public homes offer them, where this machine has them.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "bitfed/base/hash/digest.h"
#include "bitfed/data/catalog/catalog.h"

namespace bitfed {
namespace {

// Skips, and says so, where the data set is not on the search path.
#define LOAD_OR_SKIP(split, name)                                                             \
  if (!find_dataset(find_entry(name), "")) GTEST_SKIP() << name << " is not on this machine"; \
  const DataSplit split = load_dataset(name, "")

std::vector<size_t> class_sizes(const Dataset& dataset) {
  std::vector<size_t> sizes(dataset.class_count());
  for (const uint16_t label : dataset.labels) ++sizes[label];
  return sizes;
}

void expect_images(const Dataset& dataset, size_t count, size_t side, size_t channels) {
  EXPECT_EQ(dataset.size(), count);
  EXPECT_EQ(dataset.height, side);
  EXPECT_EQ(dataset.width, side);
  EXPECT_EQ(dataset.channels, channels);
  EXPECT_EQ(dataset.pixels.size(), count * side * side * channels);
}

TEST(RealData, Mnist) {
  LOAD_OR_SKIP(split, "mnist");
  expect_images(split.train, 60000, 28, 1);
  expect_images(split.test, 10000, 28, 1);
  const std::vector<size_t> expected = {980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009};
  EXPECT_EQ(class_sizes(split.test), expected);
  EXPECT_EQ(split.train.labels[0], 5);
}

TEST(RealData, FashionMnist) {
  LOAD_OR_SKIP(split, "fashion-mnist");
  expect_images(split.train, 60000, 28, 1);
  expect_images(split.test, 10000, 28, 1);
  EXPECT_EQ(class_sizes(split.train), std::vector<size_t>(10, 6000));
  EXPECT_EQ(class_sizes(split.test), std::vector<size_t>(10, 1000));
}

TEST(RealData, Cifar10) {
  LOAD_OR_SKIP(split, "cifar10");
  expect_images(split.train, 50000, 32, 3);
  expect_images(split.test, 10000, 32, 3);
  EXPECT_EQ(class_sizes(split.train), std::vector<size_t>(10, 5000));
  EXPECT_EQ(split.test.class_names[split.test.labels[0]], "cat");
}

TEST(RealData, Cifar100) {
  LOAD_OR_SKIP(split, "cifar100");
  expect_images(split.train, 50000, 32, 3);
  EXPECT_EQ(class_sizes(split.train), std::vector<size_t>(100, 500));
}

TEST(RealData, Svhn) {
  LOAD_OR_SKIP(split, "svhn");
  expect_images(split.train, 73257, 32, 3);
  expect_images(split.test, 26032, 32, 3);
  // As the paper's home counts them: 1 to 9, then 0.
  const std::vector<size_t> expected = {1744, 5099, 4149, 2882, 2523, 2384, 1977, 2019, 1660, 1595};
  EXPECT_EQ(class_sizes(split.test), expected);
}

TEST(RealData, Hapt14) {
  LOAD_OR_SKIP(split, "hapt14");
  EXPECT_EQ(split.train.columns.size(), 14u);
  EXPECT_EQ(split.train.group_names.size(), 30u);
  EXPECT_EQ(split.train.group_names[1], "2");
  EXPECT_EQ(split.train.size() + split.test.size(), 87184u);
  // The split keeps every activity on both sides.
  for (const size_t size : class_sizes(split.train)) EXPECT_GT(size, 5000u);
  for (const size_t size : class_sizes(split.test)) EXPECT_GT(size, 5000u);
}

TEST(RealData, Watch) {
  LOAD_OR_SKIP(split, "watch");
  EXPECT_EQ(split.train.columns.size(), 12u);
  EXPECT_EQ(split.train.group_names.size(), 49u);
  EXPECT_EQ(split.train.size() + split.test.size(), 6264u);
  for (const size_t size : class_sizes(split.test)) EXPECT_GT(size, 250u);
}

}  // namespace
}  // namespace bitfed
