#pragma once

#include <cstddef>
#include <cstdint>

namespace bitfed {

// The way back of a convolution of signs in tiles of 16 x 64 bytes (AMX): exact sums of gradients in fixed
// point with signs. A gradient of 16 bits is 256 * high + low, a signed byte and an unsigned one; each half
// has products of its own. Bytes lie in quads: four that follow each other along the depth side by side.
//
// Pixels are counted as positions, row by row with the border's two columns behind each row, so that a tap of
// the kernel is a distance between positions; sums at positions beyond a row are made and not used.
inline constexpr size_t kTileRows = 16;
inline constexpr size_t kTileBytes = 64;  // of a row

constexpr size_t whole_tiles(size_t count, size_t of) {
  return (count + of - 1) / of * of;
}

inline constexpr uint32_t kNoPixel = UINT32_MAX;

// Four images' gradients. Numbers times the factor are rounded to the nearest integer, ties to even.
struct GradientSplit {
  const float* images[4];
  const uint32_t* places;  // of the positions' pixels, or none
  size_t positions;        // in tiles
  size_t channels;
  float factor;
  // Image by image, 64 channels of every position behind each other; block_step to the next 64. Where there
  // is no pixel nothing is written.
  int8_t* high[4];
  uint8_t* low[4];
  size_t block_step;
  // By channel, a row each, position, image.
  int8_t* quads_high;
  uint8_t* quads_low;
  size_t row_bytes;
};

// The gradient of the weights: for every tap a row for every filter and a column for every channel of the
// input, sums over the positions of all quads of images; times the factor.
struct TileSum {
  const int8_t* high;  // by quad of images, filter, a row each, position, image
  const uint8_t* low;
  size_t row_bytes;
  size_t filters;        // in tiles
  const int8_t* signs;   // by quad of images, 16 channels, position, channel, image
  size_t signs_step;     // between quads
  size_t block_step;     // between 16 channels
  size_t channels;       // in blocks of two tiles
  const size_t* shifts;  // a tap's distance in `signs`
  size_t taps;
  size_t quads;
  size_t positions;  // in tiles
  int32_t* sums;     // of 16 filters four tiles for every tap and block of channels
  size_t sums_step;  // to those of the next 16; 0 if these can take their place
  bool adds;         // goes on from the sums
  bool ends;         // writes c
  float factor;
  float* c;                // a row a filter, by tap and channel
  size_t channels_wanted;  // the first of them
};

// The gradients of some images' pixels: sums over taps and filters.
struct TileProduct {
  const int8_t* high;  // the first pixel's patch; by image, block of 64 filters, position, filter
  const uint8_t* low;
  size_t images;
  size_t image_step;
  size_t blocks;
  size_t block_step;
  const size_t* shifts;  // a tap's distance
  size_t taps;
  const int8_t* weights;  // by 16 channels, 64 filters, tap: a tile
  size_t channels;
  const uint32_t* places;  // of the positions' pixels in an image of c, or none
  size_t positions;        // in tiles
  float factor;
  float* c;
  size_t c_image_step;
  size_t c_floats;  // pixels beyond these are none
  bool streams;     // past the caches
  bool adds;        // to c
};

struct TileKernels {
  void (*split)(const GradientSplit& split);
  // Signs (or 0) of four rows, `count` long, in turn; every 16 quads `step` bytes behind the ones before.
  void (*interleave)(const float* const (&rows)[4], size_t count, int8_t* to, size_t step);
  // The same of bits, see Images: four images' pixels at `places`, by 16 channels, position, channel. 0 where
  // there is no pixel.
  void (*gather)(const uint32_t* const (&images)[4], const uint32_t* places, size_t positions,
                 size_t channels, int8_t* to, size_t block_step);
  void (*sum)(const TileSum& sum);
  void (*multiply)(const TileProduct& product);
};

// Those of the instruction set of kernels(); none where it has no tiles.
const TileKernels* tile_kernels();

}  // namespace bitfed
