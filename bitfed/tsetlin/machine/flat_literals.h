#pragma once

#include <cstdint>

#include "bitfed/bits/bit_matrix.h"
#include "bitfed/tsetlin/machine/patches.h"

namespace bitfed {

// Many samples of a flat machine turned inside out: for every literal a bitmap over the samples that says in
// which it holds, so that one AND does a block of samples. Not thread-safe: one per thread, reused.
class FlatLiterals {
 public:
  static constexpr size_t kSamples = kBlockBits;

  explicit FlatLiterals(const PatchShape& shape);

  // Takes samples begin … begin + kSamples - 1, or as many as there are.
  void load(const BitImages& images, size_t begin);

  size_t count() const { return count_; }                      // of samples
  const uint64_t* loaded() const { return bitmap(filler()); }  // the bitmap of all samples
  // A block a literal, then that of all samples; within a literal's only the bits of samples mean something.
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
