#pragma once

#include <cstddef>
#include <cstdint>

namespace bitfed {

// The backward pass of a convolution of signs in tiles of 16 x 64 bytes (AMX): exact sums of gradients in
// fixed point times signs. A gradient of 16 bits is 256 * high + low, a signed byte and an unsigned one; each
// half has products of its own. Bytes lie in quads: four that are adjacent along the depth are adjacent in
// memory.
//
// Pixels are counted as positions, row by row with the border's two columns after each row, so that a tap of
// the kernel is a distance between positions; sums at positions beyond a row are computed and not used.
inline constexpr size_t kTileRows = 16;
inline constexpr size_t kTileBytes = 64;  // of a row

constexpr size_t whole_tiles(size_t count, size_t of) {
  return (count + of - 1) / of * of;
}

inline constexpr uint32_t kNoPixel = UINT32_MAX;

// Gradients of four images, times the factor, rounded to the nearest integer, ties to even.
struct GradientSplit {
  const float* images[4];
  const uint32_t* offsets;  // of every position's pixel, or kNoPixel
  size_t positions;         // a multiple of kTileRows
  size_t channels;
  float factor;
  // Per image: [64 channels][position][channel], block_step from one block of 64 to the next. Positions
  // without a pixel are not written.
  int8_t* high[4];
  uint8_t* low[4];
  size_t block_step;
  // [channel][position][image], row_bytes per channel.
  int8_t* quads_high;
  uint8_t* quads_low;
  size_t row_bytes;
};

// The gradient of the weights: for every tap a row per filter and a column per channel of the input; sums
// over the positions of all quads of images, times the factor.
struct TileSum {
  const int8_t* high;  // [quad of images][filter][position][image]
  const uint8_t* low;
  size_t row_bytes;      // per filter
  size_t filters;        // a multiple of kTileRows
  const int8_t* signs;   // [quad of images][16 channels][position][channel][image]
  size_t signs_step;     // between quads
  size_t block_step;     // between blocks of 16 channels
  size_t channels;       // a multiple of 2 * kTileRows
  const size_t* shifts;  // a tap's distance in `signs`
  size_t taps;
  size_t quads;
  size_t positions;  // a multiple of kTileRows
  int32_t* sums;     // per 16 filters, tap and block of channels: four tiles
  size_t sums_step;  // to the sums of the next 16 filters; 0 if they may overwrite these
  bool adds;         // begins with what `sums` holds
  bool ends;         // writes c
  float factor;
  float* c;                // [filter][tap][channel]
  size_t channels_wanted;  // the first channels are written to c
};

// The gradients of some images' pixels: sums over taps and filters.
struct TileProduct {
  const int8_t* high;  // from the first pixel's patch on: [image][64 filters][position][filter]
  const uint8_t* low;
  size_t images;
  size_t image_step;
  size_t blocks;
  size_t block_step;
  const size_t* shifts;  // a tap's distance
  size_t taps;
  const int8_t* weights;  // [16 channels][64 filters][tap]: a tile each
  size_t channels;
  const uint32_t* offsets;  // of every position's pixel in an image of c, or kNoPixel
  size_t positions;         // a multiple of kTileRows
  float factor;
  float* c;
  size_t c_image_step;
  size_t c_floats;  // pixels beyond these are not written
  bool streams;     // non-temporal stores
  bool adds;        // adds to c
};

struct TileKernels {
  void (*split)(const GradientSplit& split);
  // Signs (or 0) of four rows of `count` values, interleaved; every 16 quads begin `step` bytes after the 16
  // before.
  void (*interleave)(const float* const (&rows)[4], size_t count, int8_t* to, size_t step);
  // Signs as bits, see Images, of four images' pixels at `offsets`: [16 channels][position][channel][image].
  // 0 where there is no pixel.
  void (*gather)(const uint32_t* const (&images)[4], const uint32_t* offsets, size_t positions,
                 size_t channels, int8_t* to, size_t block_step);
  void (*sum)(const TileSum& sum);
  void (*multiply)(const TileProduct& product);
};

// The table for the instruction set of kernels(); null where it has no tiles.
const TileKernels* tile_kernels();

}  // namespace bitfed
