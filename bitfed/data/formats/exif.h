#pragma once

#include <cstdint>
#include <span>

#include "bitfed/data/formats/image.h"

namespace bitfed {

// How a camera was held, 1 to 8, of what follows the two length bytes of a JPEG's APP1 marker. 1, upright,
// where it does not say, and where it is damaged: as viewers have it.
int exif_orientation(std::span<const uint8_t> marker);

// The image as it is to be seen.
Image turned_upright(Image image, int orientation);

}  // namespace bitfed
