#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bitfed/base/hash/random.h"
#include "bitfed/data/dataset.h"

namespace bitfed {

// The random change of an image each time it is trained on. kCropFlip shifts it by up to four pixels in
// either direction, padded with black, and mirrors it with probability 1/2.
enum class Augmentation { kNone, kCropFlip };

// A shift in pixels, and whether the image is mirrored after it.
struct ImageMove {
  int down = 0;
  int right = 0;
  bool mirrored = false;

  static ImageMove draw(RandomStream* random);
};

// `pixels` is one image of the shape of `shape`; `moved` has the same size.
void move_image(const Dataset& shape, std::span<const uint8_t> pixels, const ImageMove& move,
                std::span<uint8_t> moved);

}  // namespace bitfed
