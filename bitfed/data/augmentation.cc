#include "bitfed/data/augmentation.h"

#include <algorithm>
#include <cassert>

namespace bitfed {
namespace {

constexpr uint32_t kPadding = 4;

}  // namespace

ImageMove ImageMove::draw(RandomStream* random) {
  const auto distance = [&] { return static_cast<int>(random->below(2 * kPadding + 1)) - int{kPadding}; };
  ImageMove move;
  move.down = distance();
  move.right = distance();
  move.mirrored = random->below(2) == 1;
  return move;
}

void move_image(const Dataset& shape, std::span<const uint8_t> pixels, const ImageMove& move,
                std::span<uint8_t> moved) {
  assert(moved.size() == shape.image_bytes() && pixels.size() == moved.size());
  const auto height = static_cast<int>(shape.height);
  const auto width = static_cast<int>(shape.width);
  uint8_t* to = moved.data();
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x, to += shape.channels) {
      // The pixel of the original that lands here; mirroring comes after the shift.
      const int from_y = y - move.down;
      const int from_x = (move.mirrored ? width - 1 - x : x) - move.right;
      if (from_y < 0 || from_y >= height || from_x < 0 || from_x >= width) {
        std::fill_n(to, shape.channels, uint8_t{0});
      } else {
        const size_t pixel = static_cast<size_t>(from_y) * shape.width + static_cast<size_t>(from_x);
        std::copy_n(pixels.data() + pixel * shape.channels, shape.channels, to);
      }
    }
  }
}

}  // namespace bitfed
