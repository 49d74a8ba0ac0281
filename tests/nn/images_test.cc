#include "bitfed/nn/layers/images.h"

#include <gtest/gtest.h>

#include <utility>

namespace bitfed {
namespace {

TEST(ImagesTest, TheMaximumIsTakenOnceAndForgottenWhenSomebodyMayWrite) {
  Images images(2, {1, 1, 16, 0});
  EXPECT_EQ(images.take_max_abs(), std::nullopt);
  images.set_max_abs(3);
  EXPECT_EQ(std::as_const(images).data()[0], 0);
  EXPECT_EQ(std::as_const(images).row(1, 0)[0], 0);
  EXPECT_EQ(images.take_max_abs(), 3);
  EXPECT_EQ(images.take_max_abs(), std::nullopt);
  images.set_max_abs(3);
  images.data()[0] = 4;
  EXPECT_EQ(images.take_max_abs(), std::nullopt);
  images.set_max_abs(3);
  images.row(1, 0)[0] = 4;
  EXPECT_EQ(images.take_max_abs(), std::nullopt);
}

TEST(ImagesTest, RowsBeginBehindTheBorder) {
  const ImageShape shape{2, 3, 16, 2};
  Images images(2, shape);
  EXPECT_EQ(shape.first_pixel(), 2u * 7 * 16 + 2 * 16);
  EXPECT_EQ(images.row(1, 1) - images.data(), 6 * 7 * 16 + 3 * 7 * 16 + 2 * 16);
}

}  // namespace
}  // namespace bitfed
