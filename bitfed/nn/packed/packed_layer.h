#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bitfed/base/min_times.h"
#include "bitfed/bits/bit_matrix.h"
#include "bitfed/nn/kernels/matrix.h"

namespace bitfed {

// The memory that a packed network needs for one image, as the largest of what its layers need.
struct PackedSizes {
  size_t values = 0;    // floats that a layer gives
  size_t inner = 0;     // floats within a layer
  size_t bordered = 0;  // floats of an image with its padding
  size_t words = 0;     // of signs, with their padding

  void cover(const PackedSizes& other) {
    values = std::max(values, other.values);
    inner = std::max(inner, other.inner);
    bordered = std::max(bordered, other.bordered);
    words = std::max(words, other.words);
  }
};

// What one thread works in. Layers take `values`, or `signs` where the layer before gave these, and replace
// them.
struct PackedWorkspace {
  // Layers may swap `values` and `inner`: both have the larger size.
  explicit PackedWorkspace(const PackedSizes& sizes)
      : values(std::max(sizes.values, sizes.inner)),
        inner(std::max(sizes.values, sizes.inner)),
        bordered(sizes.bordered),
        signs(sizes.words),
        next_signs(sizes.words) {}

  const uint8_t* pixels = nullptr;  // of the image; only the first layer reads them
  Floats values, inner, bordered;
  AlignedVector<uint32_t> signs, next_signs;
  bool has_signs = false;     // `signs` hold the signs of the present image
  MinTimes* times = nullptr;  // set while layers are measured

  void finished(size_t product) const {
    if (times != nullptr) times->finished(product);
  }
};

// A layer of a packed network, or several that run as one. Immutable: threads share it.
class PackedLayer {
 public:
  virtual ~PackedLayer() = default;
  virtual PackedSizes sizes() const = 0;
  virtual void run(PackedWorkspace* workspace) const = 0;
};

}  // namespace bitfed
