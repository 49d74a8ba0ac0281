#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bitfed {

// Patches of signs and filters of signs, as bits. A filter's sum at a pixel is base - 2 * (bits that differ
// between patch and filter). A patch consists of `segments` segments of `segment_words` words each,
// segment_step words apart. Pixels come in fours.
struct SignPatches {
  const uint32_t* image;
  const uint32_t* offsets;  // where every pixel's patch begins
  const uint8_t* cases;     // which bases every pixel takes, see SignFilters
  size_t quads;             // of pixels
  size_t segments;
  size_t segment_step;
  size_t segment_words;
  const uint32_t* filters;  // [word of a patch][filter]
  size_t filter_count;      // a multiple of 16
  const int32_t* bases;     // [case][filter]
};

// Batch norm, hardtanh and a max pool of four pixels after the convolution: of the largest sum,
//   out = sum * factor rounded, + offset rounded, clipped to ±1.
// Factors are not negative (a filter with a negative one is negated), so the largest sum gives the largest
// value.
struct SignPools {
  const float* factor;
  const float* offset;
  float* out;  // [pool][filter]
};

// Batch norm after a convolution, without a pool:
//   out = sum * factor rounded, + offset rounded, + shortcut rounded if there is one, clipped to ±1 if it
//   clips.
struct SignNorms {
  const float* factor;
  const float* offset;
  const float* shortcut;  // [pixel][filter], which may be `out`; null: none
  bool clips;
  float* out;  // [pixel][filter]
};

// Signs after batch norm, hardtanh and a pool about a mean that is known in advance: a bit of 1 where the
// largest sum of four pixels (or, without pools, the sum of each) is at least the filter's threshold.
struct SignThresholds {
  const int32_t* min_sums;  // the threshold of each filter
  bool pools;
  const uint32_t* offsets;  // where the words of every pool, or every pixel, begin
  uint32_t* words;          // 0 there
};

// The kernels of binary networks as they are deployed, one table per instruction set. All tables give the
// same bits. Kernels keep no state: threads may call them at once.
struct BinaryKernels {
  const char* name;

  void (*sign_pools)(const SignPatches& patches, const SignPools& pools);
  void (*sign_norms)(const SignPatches& patches, const SignNorms& norms);
  void (*sign_thresholds)(const SignPatches& patches, const SignThresholds& thresholds);
  // The sums themselves: [pixel][filter].
  void (*sign_sums)(const SignPatches& patches, float* out);

  // Bits of 1 for values at or above `mean`, of `pixels` pixels of `channels` (a multiple of 16) values each.
  // A pixel begins a new word; unused bits are 0.
  void (*signs_about)(const float* values, size_t pixels, size_t channels, float mean, uint32_t* words);
};

// The table for the instruction set of kernels().
const BinaryKernels& binary_kernels();

// All tables that this CPU can run, the scalar one first.
std::vector<const BinaryKernels*> supported_binary_kernels();

}  // namespace bitfed
