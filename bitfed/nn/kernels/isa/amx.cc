// AMX: products of tiles of bytes. AVX-512 packs the inputs and unpacks the sums.

#include "bitfed/nn/kernels/isa/units.h"

#if (defined(__AMX_INT8__) || defined(__AMXINT8__)) && defined(__AVX512BW__)  // as GCC and as Clang name it

#include <immintrin.h>

namespace bitfed::isa {
namespace {

constexpr size_t kTile = kTileRows * kTileBytes;
constexpr size_t kTileSums = kTileRows * kTileRows;

// Configures all eight tiles, 16 rows of 64 bytes each, while it lives. Tiles 0 to 3 are sums: of high bytes,
// of low bytes, and both again.
class Tiles {
 public:
  Tiles() {
    struct alignas(64) Shape {
      uint8_t palette = 1;
      uint8_t start = 0;
      uint8_t reserved[14] = {};
      uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    };
    static constexpr Shape kShape;
    _tile_loadconfig(&kShape);
  }
  ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

  static void clear() {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  static void load(const int32_t* sums) {
    _tile_loadd(0, sums, kTileBytes);
    _tile_loadd(1, sums + kTileSums, kTileBytes);
    _tile_loadd(2, sums + 2 * kTileSums, kTileBytes);
    _tile_loadd(3, sums + 3 * kTileSums, kTileBytes);
  }
  static void store(int32_t* sums) {
    _tile_stored(0, sums, kTileBytes);
    _tile_stored(1, sums + kTileSums, kTileBytes);
    _tile_stored(2, sums + 2 * kTileSums, kTileBytes);
    _tile_stored(3, sums + 3 * kTileSums, kTileBytes);
    asm volatile("" ::: "memory");  // GCC 12 does not know that these write
  }
};

// The lowest bytes of four times sixteen integers, interleaved; and the bytes above them.
inline __m512i low_quads(const __m512i (&x)[4]) {
  const __m512i ab = _mm512_mask_blend_epi8(0x2222222222222222, x[0], _mm512_slli_epi32(x[1], 8));
  const __m512i cd =
      _mm512_mask_blend_epi8(0x8888888888888888, _mm512_slli_epi32(x[2], 16), _mm512_slli_epi32(x[3], 24));
  return _mm512_mask_blend_epi16(0xAAAAAAAA, ab, cd);
}

inline __m512i high_quads(const __m512i (&x)[4]) {
  const __m512i ab = _mm512_mask_blend_epi8(0x2222222222222222, _mm512_srli_epi32(x[0], 8), x[1]);
  const __m512i cd =
      _mm512_mask_blend_epi8(0x8888888888888888, _mm512_slli_epi32(x[2], 8), _mm512_slli_epi32(x[3], 16));
  return _mm512_mask_blend_epi16(0xAAAAAAAA, ab, cd);
}

// 16 x 16 of 32 bits: pairs, then fours within the quarters of registers, then the quarters.
inline void transpose(__m512i (&rows)[16]) {
  __m512i fours[16];
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    const __m512i ab_low = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    const __m512i ab_high = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
    const __m512i cd_low = _mm512_unpacklo_epi32(rows[i + 2], rows[i + 3]);
    const __m512i cd_high = _mm512_unpackhi_epi32(rows[i + 2], rows[i + 3]);
    fours[i] = _mm512_unpacklo_epi64(ab_low, cd_low);
    fours[i + 1] = _mm512_unpackhi_epi64(ab_low, cd_low);
    fours[i + 2] = _mm512_unpacklo_epi64(ab_high, cd_high);
    fours[i + 3] = _mm512_unpackhi_epi64(ab_high, cd_high);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i low_even = _mm512_shuffle_i32x4(fours[i], fours[i + 4], 0x88);
    const __m512i low_odd = _mm512_shuffle_i32x4(fours[i], fours[i + 4], 0xdd);
    const __m512i high_even = _mm512_shuffle_i32x4(fours[i + 8], fours[i + 12], 0x88);
    const __m512i high_odd = _mm512_shuffle_i32x4(fours[i + 8], fours[i + 12], 0xdd);
    rows[i] = _mm512_shuffle_i32x4(low_even, high_even, 0x88);
    rows[i + 8] = _mm512_shuffle_i32x4(low_even, high_even, 0xdd);
    rows[i + 4] = _mm512_shuffle_i32x4(low_odd, high_odd, 0x88);
    rows[i + 12] = _mm512_shuffle_i32x4(low_odd, high_odd, 0xdd);
  }
}

// Quads of 64 channels as four images' bytes.
inline void put_images(const __m512i (&blocks)[4], void* const (&to)[4], size_t at) {
  // Image by image within a register, then a register an image.
  const __m512i by_image =
      _mm512_set_epi8(63, 59, 55, 51, 47, 43, 39, 35, 31, 27, 23, 19, 15, 11, 7, 3, 62, 58, 54, 50, 46, 42,
                      38, 34, 30, 26, 22, 18, 14, 10, 6, 2, 61, 57, 53, 49, 45, 41, 37, 33, 29, 25, 21, 17,
                      13, 9, 5, 1, 60, 56, 52, 48, 44, 40, 36, 32, 28, 24, 20, 16, 12, 8, 4, 0);
  const __m512i a = _mm512_permutexvar_epi8(by_image, blocks[0]);
  const __m512i b = _mm512_permutexvar_epi8(by_image, blocks[1]);
  const __m512i c = _mm512_permutexvar_epi8(by_image, blocks[2]);
  const __m512i d = _mm512_permutexvar_epi8(by_image, blocks[3]);
  const __m512i ab_even = _mm512_shuffle_i32x4(a, b, 0x88);
  const __m512i ab_odd = _mm512_shuffle_i32x4(a, b, 0xdd);
  const __m512i cd_even = _mm512_shuffle_i32x4(c, d, 0x88);
  const __m512i cd_odd = _mm512_shuffle_i32x4(c, d, 0xdd);
  const auto put = [&](int image, __m512i bytes) {
    _mm512_storeu_si512(static_cast<int8_t*>(to[image]) + at, bytes);
  };
  put(0, _mm512_shuffle_i32x4(ab_even, cd_even, 0x88));
  put(1, _mm512_shuffle_i32x4(ab_odd, cd_odd, 0x88));
  put(2, _mm512_shuffle_i32x4(ab_even, cd_even, 0xdd));
  put(3, _mm512_shuffle_i32x4(ab_odd, cd_odd, 0xdd));
}

// Quads of 16 positions' channels as a row per channel.
inline void put_channels(const __m512i* quads, size_t row_bytes, void* to) {
  __m512i rows[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) rows[i] = quads[4 * i];
  transpose(rows);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) _mm512_storeu_si512(static_cast<int8_t*>(to) + i * row_bytes, rows[i]);
}

// 64 channels, or `blocks` times 16, of 16 positions.
inline void split_tile(const GradientSplit& s, size_t channel, size_t blocks, size_t first) {
  const __m512 factor = _mm512_set1_ps(s.factor);
  void* const high_to[4] = {s.high[0], s.high[1], s.high[2], s.high[3]};
  void* const low_to[4] = {s.low[0], s.low[1], s.low[2], s.low[3]};
  __m512i highs[kTileRows][4] = {};
  __m512i lows[kTileRows][4] = {};
  for (size_t p = 0; p < kTileRows; ++p) {
    const uint32_t offset = s.offsets[first + p];
    if (offset == kNoPixel) continue;
    for (size_t block = 0; block < blocks; ++block) {
      __m512i integers[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const __m512 gradient = _mm512_loadu_ps(s.images[i] + offset + channel + block * kTileRows);
        integers[i] = _mm512_cvtps_epi32(_mm512_mul_ps(gradient, factor));
      }
      highs[p][block] = high_quads(integers);
      lows[p][block] = low_quads(integers);
    }
    const size_t at = channel / kTileBytes * s.block_step + (first + p) * kTileBytes;
    put_images(highs[p], high_to, at);
    put_images(lows[p], low_to, at);
  }
  for (size_t block = 0; block < blocks; ++block) {
    const size_t at = (channel + block * kTileRows) * s.row_bytes + 4 * first;
    put_channels(&highs[0][block], s.row_bytes, s.quads_high + at);
    put_channels(&lows[0][block], s.row_bytes, s.quads_low + at);
  }
}

void split(const GradientSplit& s) {
  for (size_t channel = 0; channel < s.channels; channel += kTileBytes) {
    const size_t left = (s.channels - channel) / kTileRows;
    for (size_t first = 0; first < s.positions; first += kTileRows)
      split_tile(s, channel, left < 4 ? left : 4, first);
  }
}

void interleave(const float* const (&rows)[4], size_t count, int8_t* to, size_t step) {
  for (size_t at = 0; at < count; at += kTileRows, to += step) {
    __m512i integers[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) integers[i] = _mm512_cvtps_epi32(_mm512_loadu_ps(rows[i] + at));
    _mm512_storeu_si512(to, low_quads(integers));
  }
}

// The lowest 16 bits of four words, interleaved.
inline __m512i sign_quads(const uint32_t* const (&words)[4], size_t at, size_t shift) {
  uint64_t bits = 0;
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) bits |= _pdep_u64(words[i][at] >> shift, 0x1111111111111111 << i);
  return _mm512_mask_blend_epi8(bits, _mm512_set1_epi8(-1), _mm512_set1_epi8(1));
}

void gather(const uint32_t* const (&images)[4], const uint32_t* offsets, size_t positions, size_t channels,
            int8_t* to, size_t block_step) {
  for (size_t p = 0; p < positions; ++p, to += kTileBytes) {
    for (size_t c = 0; c < channels; c += kTileRows) {
      const __m512i quads =
          offsets[p] == kNoPixel ? _mm512_setzero_si512() : sign_quads(images, offsets[p] + c / 32, c % 32);
      _mm512_storeu_si512(to + c / kTileRows * block_step, quads);
    }
  }
}

// 256 * (sums of high bytes) + (sums of low bytes).
inline __m512 joined(const int32_t* sums, __m512 factor) {
  const __m512i high = _mm512_loadu_si512(sums);
  const __m512i low = _mm512_loadu_si512(sums + kTileSums);
  return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(high, 8), low)), factor);
}

// The depth of some sums: positions of quads.
struct Depth {
  size_t quad, quads;
  size_t position, positions;
};

inline int32_t* sums_of(const TileSum& s, size_t filter) {
  return s.sums + filter / kTileRows * s.sums_step;
}

// All sums of 16 filters over a depth, added to what there is unless it is the first.
inline void sum_filters(const TileSum& s, const Tiles& tiles, size_t filter, const Depth& depth, bool adds) {
  int32_t* sums = sums_of(s, filter);
  for (size_t tap = 0; tap < s.taps; ++tap) {
    for (size_t c = 0; c < s.channels; c += 2 * kTileRows, sums += 4 * kTileSums) {
      if (adds) {
        tiles.load(sums);
      } else {
        tiles.clear();
      }
      for (size_t quad = depth.quad; quad < depth.quad + depth.quads; ++quad) {
        const size_t at = (quad * s.filters + filter) * s.row_bytes + 4 * depth.position;
        const int8_t* signs = s.signs + quad * s.signs_step + c / kTileRows * s.block_step + s.shifts[tap] +
                              depth.position * kTileBytes;
        for (size_t p = 0; p < depth.positions; p += kTileRows) {
          _tile_loadd(4, s.high + at + 4 * p, s.row_bytes);
          _tile_loadd(5, s.low + at + 4 * p, s.row_bytes);
          _tile_loadd(6, signs + p * kTileBytes, kTileBytes);
          _tile_loadd(7, signs + s.block_step + p * kTileBytes, kTileBytes);
          _tile_dpbssd(0, 4, 6);
          _tile_dpbusd(1, 5, 6);
          _tile_dpbssd(2, 4, 7);
          _tile_dpbusd(3, 5, 7);
        }
      }
      tiles.store(sums);
    }
  }
}

inline void end_filters(const TileSum& s, size_t filter) {
  const __m512 factor = _mm512_set1_ps(s.factor);
  const size_t columns = s.taps * s.channels_wanted;
  const int32_t* sums = sums_of(s, filter);
  for (size_t tap = 0; tap < s.taps; ++tap) {
    for (size_t c = 0; c < s.channels; c += kTileRows, sums += 2 * kTileSums) {
      if (c >= s.channels_wanted) continue;
      float* to = s.c + filter * columns + tap * s.channels_wanted + c;
      for (size_t row = 0; row < kTileRows; ++row)
        _mm512_storeu_ps(to + row * columns, joined(sums + row * kTileRows, factor));
    }
  }
}

inline size_t smaller(size_t a, size_t b) {
  return a < b ? a : b;
}

// About this many tiles along the depth are processed together: with fewer, loads and stores of sums would
// take time; with more, the first-level cache would not hold the tiles of 16 filters.
constexpr size_t kTilesTogether = 8;

// Tiles to process together so that `tiles` make parts of one size.
inline size_t even_part(size_t tiles) {
  const size_t parts = (tiles + kTilesTogether / 2) / kTilesTogether;
  return parts < 2 ? tiles : (tiles + parts - 1) / parts;
}

void sum(const TileSum& s) {
  const Tiles tiles;
  const size_t tiles_of_quad = s.positions / kTileRows;
  const size_t together = even_part(tiles_of_quad) * kTileRows;
  const size_t quads = tiles_of_quad < kTilesTogether ? kTilesTogether / tiles_of_quad : 1;
  for (size_t filter = 0; filter < s.filters; filter += kTileRows) {
    for (size_t quad = 0; quad < s.quads; quad += quads) {
      for (size_t p = 0; p < s.positions; p += together) {
        const Depth depth{quad, smaller(quads, s.quads - quad), p, smaller(together, s.positions - p)};
        sum_filters(s, tiles, filter, depth, s.adds || quad + p > 0);
      }
    }
    if (s.ends) end_filters(s, filter);
  }
}

// 16 positions of an image.
struct Positions {
  size_t image;
  size_t first;
};

// The sums of two times 16 positions by 16 channels, on their way to their pixels.
struct Finished {
  alignas(64) int32_t sums[4 * kTileSums];
  Positions two[2];
  size_t channel;
  size_t rows = 0;  // half as many for an odd last tile, which is here twice
  size_t rows_put = 0;
};

// Stores the next `rows` rows of sums to their pixels.
inline void put(const TileProduct& p, size_t rows, Finished* finished) {
  const __m512 factor = _mm512_set1_ps(p.factor);
  const size_t end = smaller(finished->rows_put + rows, finished->rows);
  for (size_t row = finished->rows_put; row < end; ++row) {
    const size_t tile = row / kTileRows;
    const Positions& positions = finished->two[tile];
    const uint32_t offset = p.offsets[positions.first + row % kTileRows];
    const size_t at = positions.image * p.c_image_step + offset;
    if (offset == kNoPixel || at >= p.c_floats) continue;
    const int32_t* sums = finished->sums + 2 * tile * kTileSums + row % kTileRows * kTileRows;
    float* to = p.c + at + finished->channel;
    const __m512 gradient = joined(sums, factor);
    if (p.adds) {
      _mm512_store_ps(to, _mm512_add_ps(_mm512_load_ps(to), gradient));
    } else if (p.streams) {
      _mm512_stream_ps(to, gradient);
    } else {
      _mm512_store_ps(to, gradient);
    }
  }
  finished->rows_put = end;
}

// Twice 16 positions by a tile of channels: weights, which may come from memory, are loaded once for both,
// and all taps are multiplied with 64 filters of the gradient while these are in the first-level cache. In
// between, the previous sums are stored.
inline void multiply_positions(const TileProduct& p, const Tiles& tiles, const int8_t* weights,
                               Finished* next, Finished* last) {
  const auto gradient_at = [&](const Positions& positions) {
    return positions.image * p.image_step + positions.first * kTileBytes;
  };
  size_t at = gradient_at(next->two[0]);
  size_t other_at = gradient_at(next->two[1]);
  const size_t rows = 2 * kTileRows / (p.blocks * p.taps + 1) + 1;
  tiles.clear();
  for (size_t block = 0; block < p.blocks; ++block, at += p.block_step, other_at += p.block_step) {
    for (size_t tap = 0; tap < p.taps; ++tap, weights += kTile) {
      const size_t shift = p.shifts[tap];
      _tile_loadd(6, weights, kTileBytes);
      _tile_loadd(4, p.high + at + shift, kTileBytes);
      _tile_dpbssd(0, 4, 6);
      _tile_loadd(5, p.low + at + shift, kTileBytes);
      _tile_dpbusd(1, 5, 6);
      _tile_loadd(7, p.high + other_at + shift, kTileBytes);
      _tile_dpbssd(2, 7, 6);
      _tile_loadd(4, p.low + other_at + shift, kTileBytes);
      _tile_dpbusd(3, 4, 6);
      put(p, rows, last);
    }
  }
  put(p, 2 * kTileRows, last);  // what is left, where there are no taps all of it
  tiles.store(next->sums);
  next->rows_put = 0;
}

void multiply(const TileProduct& p) {
  const Tiles tiles;
  const size_t tiles_of_image = p.positions / kTileRows;
  const size_t count = p.images * tiles_of_image;
  const auto positions = [&](size_t i) -> Positions {
    return {i / tiles_of_image, i % tiles_of_image * kTileRows};
  };
  Finished two[2];
  Finished* next = &two[0];
  Finished* last = &two[1];
  const int8_t* weights = p.weights;
  for (size_t c = 0; c < p.channels; c += kTileRows, weights += p.taps * p.blocks * kTile) {
    for (size_t i = 0; i < count; i += 2) {
      next->two[0] = positions(i);
      next->two[1] = positions(i + 1 < count ? i + 1 : i);
      next->rows = i + 1 < count ? 2 * kTileRows : kTileRows;
      next->channel = c;
      multiply_positions(p, tiles, weights, next, last);
      Finished* const made = next;
      next = last;
      last = made;
    }
  }
  put(p, 2 * kTileRows, last);
}

}  // namespace

const TileKernels& amx_tile_kernels() {
  static constexpr TileKernels kTable = {split, interleave, gather, sum, multiply};
  return kTable;
}

}  // namespace bitfed::isa

#endif
