#pragma once

#include <cstdint>

#include "bitfed/bits/bit_matrix.h"
#include "bitfed/tsetlin/machine/patches.h"

namespace bitfed {

// Many samples of a flat machine, transposed: for every literal a bitmap over the samples in which it holds,
// so that one AND processes a block of samples. Not thread-safe: one per thread, reused.
class FlatLiterals {
 public:
  static constexpr size_t kSamples = kBlockBits;

  explicit FlatLiterals(const PatchShape& shape);

  // Loads samples begin … begin + kSamples - 1, or fewer at the end of `images`.
  void load(const BitImages& images, size_t begin);

  size_t count() const { return count_; }                      // of samples
  const uint64_t* loaded() const { return bitmap(filler()); }  // the bitmap of all samples
  // One block per literal, then the bitmap of all samples. In a literal's block only bits of loaded samples
  // are valid.
  const uint64_t* bitmaps() const { return bitmaps_.data(); }

 private:
  size_t filler() const { return shape_.literals(); }
  uint64_t* bitmap(size_t literal) { return bitmaps_.data() + literal * kBlockWords; }
  const uint64_t* bitmap(size_t literal) const { return bitmaps_.data() + literal * kBlockWords; }

  PatchShape shape_;
  size_t count_ = 0;
  AlignedVector<uint64_t> bitmaps_;
};

}  // namespace bitfed
