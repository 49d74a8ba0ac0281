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
  const size_t row_bytes = shape.width * shape.channels;
  // Mirroring comes after the shift: of a row, the pixels from `first` up to `last` stay within the image.
  const int first = std::clamp(-move.right, 0, width);
  const int last = std::clamp(width - move.right, 0, width);
  std::fill(moved.begin(), moved.end(), uint8_t{0});
  for (int y = 0; y < height; ++y, to += row_bytes) {
    const int from_y = y - move.down;
    if (from_y < 0 || from_y >= height || first >= last) continue;
    const uint8_t* from = pixels.data() + static_cast<size_t>(from_y) * row_bytes;
    if (!move.mirrored) {
      std::copy_n(from + static_cast<size_t>(first) * shape.channels,
                  static_cast<size_t>(last - first) * shape.channels,
                  to + static_cast<size_t>(first + move.right) * shape.channels);
      continue;
    }
    for (int x = first; x < last; ++x) {
      const uint8_t* pixel = from + static_cast<size_t>(x) * shape.channels;
      uint8_t* place = to + static_cast<size_t>(width - 1 - x - move.right) * shape.channels;
      for (size_t c = 0; c < shape.channels; ++c) place[c] = pixel[c];
    }
  }
}

}  // namespace bitfed
