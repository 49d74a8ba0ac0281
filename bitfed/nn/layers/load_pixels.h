#pragma once

#include <cstdint>
#include <span>

#include "bitfed/nn/layers/images.h"

namespace bitfed {

// Writes one image of a batch from bytes [row][column][channel]. Channel c of a pixel with byte b becomes
// table[256 * c + b]; other channels keep their values.
void load_pixels(std::span<const float> table, std::span<const uint8_t> pixels, size_t image, Images* images);

}  // namespace bitfed
