#include "bitfed/data/augmentation.h"

#include <gtest/gtest.h>

#include <set>

namespace bitfed {
namespace {

using Pixels = std::vector<uint8_t>;

Pixels moved(const Dataset& shape, const Pixels& pixels, const ImageMove& move) {
  Pixels to(pixels.size(), 99);
  move_image(shape, pixels, move, to);
  return to;
}

Dataset shape_of(size_t height, size_t width, size_t channels) {
  Dataset shape;
  shape.height = height;
  shape.width = width;
  shape.channels = channels;
  return shape;
}

TEST(AugmentationTest, ByHand) {
  const Dataset shape = shape_of(2, 3, 1);
  const Pixels image = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(moved(shape, image, {}), image);
  EXPECT_EQ(moved(shape, image, {1, 0, false}), (Pixels{0, 0, 0, 1, 2, 3}));
  EXPECT_EQ(moved(shape, image, {0, -1, false}), (Pixels{2, 3, 0, 5, 6, 0}));
  EXPECT_EQ(moved(shape, image, {0, 0, true}), (Pixels{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(moved(shape, image, {-1, 1, true}), (Pixels{5, 4, 0, 0, 0, 0}));
  EXPECT_EQ(moved(shape, image, {4, 4, false}), Pixels(6, 0));
}

TEST(AugmentationTest, ChannelsStayTogether) {
  const Pixels image = {1, 2, 3, 4, 5, 6};  // two pixels of three channels
  EXPECT_EQ(moved(shape_of(1, 2, 3), image, {0, 0, true}), (Pixels{4, 5, 6, 1, 2, 3}));
}

TEST(AugmentationTest, DrawsAllMoves) {
  RandomStream random({1, "moves"});
  std::set<int> down, right;
  int mirrored = 0;
  for (int i = 0; i < 1000; ++i) {
    const ImageMove move = ImageMove::draw(&random);
    down.insert(move.down);
    right.insert(move.right);
    mirrored += move.mirrored ? 1 : 0;
  }
  const std::set<int> all = {-4, -3, -2, -1, 0, 1, 2, 3, 4};
  EXPECT_EQ(down, all);
  EXPECT_EQ(right, all);
  EXPECT_NEAR(mirrored, 500, 60);
}

}  // namespace
}  // namespace bitfed
