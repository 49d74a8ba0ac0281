#pragma once

#include <cstdint>
#include <vector>

#include "bitfed/base/hash/random.h"
#include "bitfed/data/booleanize/bit_images.h"
#include "bitfed/tsetlin/machine/patches.h"

namespace bitfed {

// The bit of one plane of one pixel.
inline bool pixel_bit(const BitImages& images, size_t sample, size_t y, size_t x, size_t plane) {
  return images.bits.get(sample * images.height + y, x * images.planes + plane);
}

// The literals of the patch whose corner is at (y, x), one after the other as PatchShape's comment lists
// them: the definition that everything else is held against.
inline std::vector<bool> naive_literals(const BitImages& images, size_t sample, const PatchShape& shape,
                                        size_t y, size_t x) {
  std::vector<bool> literals;
  for (size_t t = 0; t + 1 < shape.positions_y(); ++t) literals.push_back(y > t);
  for (size_t t = 0; t + 1 < shape.positions_x(); ++t) literals.push_back(x > t);
  for (size_t dy = 0; dy < shape.patch_height; ++dy) {
    for (size_t dx = 0; dx < shape.patch_width; ++dx) {
      for (size_t plane = 0; plane < shape.planes; ++plane) {
        literals.push_back(pixel_bit(images, sample, y + dy, x + dx, plane));
      }
    }
  }
  const size_t features = literals.size();
  for (size_t i = 0; i < features; ++i) literals.push_back(!literals[i]);
  return literals;
}

// All patches of a sample, row by row.
inline std::vector<std::vector<bool>> naive_patches(const BitImages& images, size_t sample,
                                                    const PatchShape& shape) {
  std::vector<std::vector<bool>> patches;
  for (size_t y = 0; y < shape.positions_y(); ++y) {
    for (size_t x = 0; x < shape.positions_x(); ++x) {
      patches.push_back(naive_literals(images, sample, shape, y, x));
    }
  }
  return patches;
}

// True where all literals that `includes` (one flag each) asks for hold in the patch.
template <typename Includes>
bool naive_match(const std::vector<bool>& patch, const Includes& includes) {
  for (size_t literal = 0; literal < patch.size(); ++literal) {
    if (includes(literal) && !patch[literal]) return false;
  }
  return true;
}

// Random bits, each set with probability `density`.
inline BitImages random_images(size_t count, const PatchShape& shape, RandomStream& random,
                               double density = 0.5) {
  BitImages images(count, shape.height, shape.width, shape.planes);
  for (size_t row = 0; row < images.bits.rows(); ++row) {
    for (size_t column = 0; column < images.bits.columns(); ++column) {
      images.bits.set(row, column, random.uniform() < density);
    }
  }
  return images;
}

}  // namespace bitfed
