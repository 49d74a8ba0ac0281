#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bitfed {

// Signs about pixels, and filters of signs. A filter's sum about a pixel is base - 2 * (bits that differ
// between patch and filter). Bits of a patch: `segments` pieces of `segment_words` words, a step apart.
// Pixels come in fours.
struct SignPatches {
  const uint32_t* image;
  const uint32_t* places;  // of every pixel: where its patch begins
  const uint8_t* cases;    // of every pixel: which bases count
  size_t quads;            // of pixels
  size_t segments;
  size_t segment_step;
  size_t segment_words;
  const uint32_t* filters;  // word by word of a patch: that word of every filter
  size_t filter_count;      // a multiple of 16
  const int32_t* bases;     // [case][filter]
};

// What stands behind the convolution: of the four pixels of a pool the largest sum counts, and
//   out = sum * factor rounded, + offset rounded, clipped to ±1.
// Factors are not negative (a filter may be turned about to make its factor so), so the largest sum gives the
// largest value.
struct SignPools {
  const float* factor;
  const float* offset;
  float* out;  // [pool][filter]
};

// Behind a convolution without a pool:
//   out = sum * factor rounded, + offset rounded, + shortcut rounded if there is one, clipped to ±1 if it
//   clips.
struct SignNorms {
  const float* factor;
  const float* offset;
  const float* shortcut;  // [pixel][filter], which may be `out`; null: none
  bool clips;
  float* out;  // [pixel][filter]
};

// The signs behind batch norm, hardtanh and a pool where they are taken about a mean that is known before: a
// bit of 1 where the largest sum of four pixels, or the sum of each, is at least so much.
struct SignThresholds {
  const int32_t* least;  // of each filter
  bool pools;
  const uint32_t* places;  // of every pool, or every pixel: where its words begin
  uint32_t* words;         // zeros there
};

// The kernels of binary networks as they are deployed, one table per instruction set. All give the same bits.
struct BinaryKernels {
  const char* name;

  void (*sign_pools)(const SignPatches& patches, const SignPools& pools);
  void (*sign_norms)(const SignPatches& patches, const SignNorms& norms);
  void (*sign_thresholds)(const SignPatches& patches, const SignThresholds& thresholds);
  // The sums themselves: [pixel][filter].
  void (*sign_sums)(const SignPatches& patches, float* out);

  // Bits of what is at or above `mean`: `pixels` times `channels` values, a multiple of 16, those of a pixel
  // in whole words; bits past them are 0.
  void (*signs_about)(const float* values, size_t pixels, size_t channels, float mean, uint32_t* words);
};

// The table for the instruction set of kernels().
const BinaryKernels& binary_kernels();

// All tables that this CPU can run, the plain one first.
std::vector<const BinaryKernels*> supported_binary_kernels();

}  // namespace bitfed
