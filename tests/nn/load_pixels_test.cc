#include "bitfed/nn/layers/load_pixels.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace bitfed {
namespace {

// One, two and three channels; channels as they are and padded; with and without a border.
TEST(LoadPixels, EveryChannelByItsTable) {
  for (const size_t channels : {1, 2, 3}) {
    for (const size_t border : {0, 1}) {
      for (const ImageShape& shape :
           {ImageShape{3, 5, channels, border}, padded_shape(3, 5, channels, border)}) {
        std::vector<float> table(256 * channels);
        std::iota(table.begin(), table.end(), 1.0f);
        std::vector<uint8_t> pixels(15 * channels);
        for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(255 - 7 * i);
        Images images(2, shape);
        load_pixels(table, pixels, 1, &images);
        Images expected(2, shape);
        for (size_t y = 0; y < 3; ++y) {
          for (size_t x = 0; x < 5; ++x) {
            for (size_t c = 0; c < channels; ++c)
              expected.row(1, y)[x * shape.channels + c] =
                  static_cast<float>(256 * c + pixels[(y * 5 + x) * channels + c] + 1);
          }
        }
        for (size_t i = 0; i < 2 * shape.image_floats(); ++i)
          ASSERT_EQ(images.data()[i], expected.data()[i]) << i;
      }
    }
  }
}

}  // namespace
}  // namespace bitfed
