#include "bitfed/data/formats/sample_sheet.h"

#include <algorithm>
#include <vector>

namespace bitfed {
namespace {

constexpr size_t kLargestSide = 64;

}  // namespace

Image sample_sheet(const Dataset& images, size_t classes, size_t columns) {
  const size_t step = (std::max(images.height, images.width) + kLargestSide - 1) / kLargestSide;
  const size_t height = (images.height + step - 1) / step;
  const size_t width = (images.width + step - 1) / step;
  const size_t rows = std::min(classes, images.class_count());
  Image sheet{rows * (height + 1) + 1, columns * (width + 1) + 1, images.channels, {}};
  sheet.pixels.assign(sheet.height * sheet.width * sheet.channels, 255);
  std::vector<size_t> shown(rows);
  for (size_t i = 0; i < images.size(); ++i) {
    const size_t row = images.labels[i];
    if (row >= rows || shown[row] == columns) continue;
    const size_t top = 1 + row * (height + 1);
    const size_t left = 1 + shown[row]++ * (width + 1);
    const auto pixels = images.image(i);
    for (size_t y = 0; y < height; ++y) {
      for (size_t x = 0; x < width; ++x) {
        for (size_t c = 0; c < images.channels; ++c) {
          sheet.pixels[((top + y) * sheet.width + left + x) * sheet.channels + c] =
              pixels[(y * step * images.width + x * step) * images.channels + c];
        }
      }
    }
  }
  return sheet;
}

}  // namespace bitfed
