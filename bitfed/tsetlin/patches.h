#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "bitfed/bits/bit_matrix.h"
#include "bitfed/data/bit_images.h"

namespace bitfed {

// The literals of a patch of bits, in order: the patch's position as two thermometers (y > t for
// t = 0 … positions_y - 2, then x > t), its content (row by row, then column, then plane), and the
// negations of all of these. A flat machine is one whose only patch is the whole image.
struct PatchShape {
  size_t height = 0;  // of the image
  size_t width = 0;
  size_t planes = 0;
  size_t patch_height = 0;
  size_t patch_width = 0;

  size_t positions_y() const { return height - patch_height + 1; }
  size_t positions_x() const { return width - patch_width + 1; }
  size_t patches() const { return positions_y() * positions_x(); }
  bool is_flat() const { return patches() == 1; }
  size_t position_bits() const { return positions_y() - 1 + positions_x() - 1; }
  size_t content_bits() const { return patch_height * patch_width * planes; }
  size_t features() const { return position_bits() + content_bits(); }
  size_t literals() const { return 2 * features(); }
  bool operator==(const PatchShape&) const = default;
};

// One image turned inside out: for every literal a bitmap over the patches that says where it holds.
// The AND of the bitmaps of a clause's literals then tells at once whether and where the clause matches.
// Patch y * positions_x + x is bit number that of a bitmap; bitmaps are padded with zeros to whole blocks.
// A flat machine has one patch and no bitmaps. Not thread-safe: one per thread, reused from image to image.
class PatchLiterals {
 public:
  explicit PatchLiterals(const PatchShape& shape);

  const PatchShape& shape() const { return shape_; }

  // Makes this image the current one. `images` must outlive the calls below.
  void load(const BitImages& images, size_t sample);

  size_t blocks() const { return blocks_; }                     // of a bitmap
  const uint64_t* bitmaps() const { return bitmaps_.data(); }   // of literal l: at block l * blocks()
  const uint64_t* everywhere() const { return valid_.data(); }  // the bitmap of all patches

  // The literals of one patch as packed bits: words_for(literals) words.
  void patch(size_t index, uint64_t* literals) const;

 private:
  uint64_t* bitmap(size_t literal) { return bitmaps_.data() + literal * blocks_ * kBlockWords; }
  void fill_positions();
  void fill_content();
  void write_bitmap_pair(size_t feature, const uint64_t* strip, size_t from);

  PatchShape shape_;
  size_t blocks_;
  AlignedVector<uint64_t> valid_;
  AlignedVector<uint64_t> bitmaps_;
  std::vector<uint64_t> plane_row_;  // one row of one plane
  std::vector<uint64_t> strip_;      // for one plane and column offset: all rows' windows, end to end
  const BitImages* images_ = nullptr;
  size_t sample_ = 0;
};

// Reorders a clause's literals after the one at `last` and its neighbours ruled the clause out: what did
// so now is likely to do so again. The order has no effect on the result.
inline void try_first(uint16_t* literals, size_t last) {
  constexpr size_t kGroup = 4;  // as many as the widest kernel looks at together
  if (last < kGroup) return;
  const size_t first = std::max(kGroup, last + 1 - kGroup);
  for (size_t i = first; i <= last; ++i) std::swap(literals[i - first], literals[i]);
}

}  // namespace bitfed
