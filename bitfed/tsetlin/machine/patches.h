#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bitfed/bits/bit_matrix.h"
#include "bitfed/data/booleanize/bit_images.h"

namespace bitfed {

// The literals of a patch of bits, in order: the patch's position as two thermometers (y > t for t = 0 …
// positions_y - 2, then x > t), its content (by row, column, plane), and the negations of all of these. In a
// flat machine the only patch is the whole image.
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
  bool is_position(size_t literal) const { return literal % features() < position_bits(); }
  bool operator==(const PatchShape&) const = default;
};

// One image, transposed: for every literal a bitmap over the patches in which it holds. The AND of the
// bitmaps of a clause's literals gives whether and where the clause matches. Patch (y, x) is bit y *
// positions_x + x of a bitmap; bitmaps are padded with zeros to whole blocks. A flat machine has one patch
// and no bitmaps. Not thread-safe: one per thread, reused from image to image.
class PatchLiterals {
 public:
  explicit PatchLiterals(const PatchShape& shape);

  const PatchShape& shape() const { return shape_; }

  // Makes this image the current one. `images` must outlive the calls below.
  void load(const BitImages& images, size_t sample);

  size_t blocks() const { return blocks_; }                     // of a bitmap
  const uint64_t* bitmaps() const { return bitmaps_.data(); }   // of literal l: at block l * blocks()
  const uint64_t* everywhere() const { return valid_.data(); }  // the bitmap of all patches

  // The index of a bitmap of ones after the last literal's: pads lists of literals.
  uint16_t filler() const { return static_cast<uint16_t>(shape_.literals()); }

  // The patches where all the position literals among `actions` hold.
  void position_mask(const uint64_t* actions, uint64_t* mask) const;

  // The literals of one patch as packed bits: words_for(literals) words.
  void patch(size_t index, uint64_t* literals) const;

 private:
  uint64_t* bitmap(size_t literal) { return bitmaps_.data() + literal * blocks_ * kBlockWords; }
  void fill_positions();
  void fill_content();
  void fill_strips(const uint64_t* rows, size_t row_words);
  const uint64_t* load_planes();

  PatchShape shape_;
  size_t blocks_;
  AlignedVector<uint64_t> valid_;
  AlignedVector<uint64_t> bitmaps_;
  std::vector<uint64_t> planes_;  // several planes: the image by plane, each row in words_for(width) words
  std::vector<uint64_t> strips_;  // for one plane, per column offset: the windows of all rows, contiguous
  size_t strip_words_ = 0;
  const BitImages* images_ = nullptr;
  size_t sample_ = 0;
};

}  // namespace bitfed
