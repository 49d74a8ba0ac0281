#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bitfed/base/hash/random.h"
#include "bitfed/data/dataset.h"

namespace bitfed {

// What images are changed by, anew each time that they are trained on: kCropFlip moves one by up to four
// pixels in either direction, black coming in from beyond the edge, and mirrors every second.
enum class Augmentation { kNone, kCropFlip };

// Where an image is moved to, in pixels, and whether it is mirrored after that.
struct ImageMove {
  int down = 0;
  int right = 0;
  bool mirrored = false;

  static ImageMove draw(RandomStream* random);
};

// `pixels` as they are in images of the data set's shape; `moved` has as many.
void move_image(const Dataset& shape, std::span<const uint8_t> pixels, const ImageMove& move,
                std::span<uint8_t> moved);

}  // namespace bitfed
