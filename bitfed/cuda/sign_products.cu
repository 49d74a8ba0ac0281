// Convolutions of signs with signs, on the tensor cores: sums of bytes, exact in whatever order. A gradient
// in fixed point is 256 * high + low, a signed and an unsigned byte; the sums of the high bytes are shifted
// before the low ones are added. 32-bit sums wrap around within, and end in range.

#include "bitfed/cuda/kernels.h"
#include "bitfed/cuda/lanes.h"

namespace bitfed::cuda {
namespace {

constexpr unsigned kRows = 128;  // pixels of a block
constexpr unsigned kDepth = 64;  // bytes of a tile's row
constexpr unsigned kChunk = 16;  // bytes that are copied at once; channels are multiples of it
constexpr unsigned kChunks = kDepth / kChunk;
constexpr unsigned kStages = 3;
constexpr unsigned kMaxTaps = 225;

// Where a chunk of a row of a tile lies: shuffled, so that eight rows' chunks meet all banks.
BITFED_FORMULA unsigned tile_offset(unsigned row, unsigned chunk) {
  return row * kDepth + (chunk ^ (row >> 1 & 3)) * kChunk;
}

#ifdef BITFED_CUDA_EMULATED
inline void copy_chunk(int8_t* to, const int8_t* from, bool inside) {
  if (inside) {
    std::memcpy(to, from, kChunk);
  } else {
    std::memset(to, 0, kChunk);
  }
}
inline void commit_copies() {}
template <unsigned kPending>
inline void wait_for_copies() {}
#else
__device__ __forceinline__ void copy_chunk(int8_t* to, const int8_t* from, bool inside) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int bytes = inside ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes));
}
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;");
}
template <unsigned kPending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending));
}
#endif

// sums += a * b' of a warp's part of two tiles: 16 * kM rows of a, 8 * kN rows of b. In sums[m][n][i] is the
// product of row 16 m + lane / 4 + 8 (i / 2) and column 8 n + 2 (lane % 4) + i % 2.
template <bool kUnsigned, unsigned kM, unsigned kN>
__device__ __forceinline__ void multiply_warp(const int8_t* a, const int8_t* b, unsigned row, unsigned column,
                                              int (&sums)[kM][kN][4]) {
  const unsigned lane = threadIdx.x % 32;
#ifdef BITFED_CUDA_EMULATED
  const auto at = [](const int8_t* tile, unsigned r, unsigned k) {
    return tile[tile_offset(r, k / kChunk) + k % kChunk];
  };
  for (unsigned m = 0; m < kM; ++m) {
    for (unsigned n = 0; n < kN; ++n) {
      for (unsigned i = 0; i < 4; ++i) {
        unsigned sum = static_cast<unsigned>(sums[m][n][i]);
        for (unsigned k = 0; k < kDepth; ++k) {
          const int8_t byte = at(a, row + 16 * m + lane / 4 + 8 * (i / 2), k);
          const int left = kUnsigned ? static_cast<uint8_t>(byte) : byte;
          sum += static_cast<unsigned>(left * at(b, column + 8 * n + 2 * (lane % 4) + i % 2, k));
        }
        sums[m][n][i] = static_cast<int>(sum);
      }
    }
  }
#else
#pragma unroll
  for (unsigned half = 0; half < 2; ++half) {
    unsigned left[kM][4];
    unsigned right[kN][2];
#pragma unroll
    for (unsigned m = 0; m < kM; ++m) {
      const auto address = static_cast<unsigned>(
          __cvta_generic_to_shared(a + tile_offset(row + 16 * m + lane % 16, 2 * half + lane / 16)));
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(left[m][0]), "=r"(left[m][1]), "=r"(left[m][2]), "=r"(left[m][3])
                   : "r"(address));
    }
#pragma unroll
    for (unsigned n = 0; n < kN; n += 2) {
      const auto address = static_cast<unsigned>(__cvta_generic_to_shared(
          b + tile_offset(column + 8 * n + lane % 8 + lane / 16 * 8, 2 * half + lane / 8 % 2)));
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(right[n][0]), "=r"(right[n][1]), "=r"(right[n + 1][0]), "=r"(right[n + 1][1])
                   : "r"(address));
    }
#pragma unroll
    for (unsigned m = 0; m < kM; ++m) {
#pragma unroll
      for (unsigned n = 0; n < kN; ++n) {
        int(&s)[4] = sums[m][n];
        if constexpr (kUnsigned) {
          asm volatile(
              "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
              "%2, %3};"
              : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3])
              : "r"(left[m][0]), "r"(left[m][1]), "r"(left[m][2]), "r"(left[m][3]), "r"(right[n][0]),
                "r"(right[n][1]));
        } else {
          asm volatile(
              "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
              "%2, %3};"
              : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3])
              : "r"(left[m][0]), "r"(left[m][1]), "r"(left[m][2]), "r"(left[m][3]), "r"(right[n][0]),
                "r"(right[n][1]));
        }
      }
    }
  }
#endif
}

// A convolution as a product: rows are pixels of the result, the depth is [tap][channel of the source],
// columns are channels of the result. Row (image, y, x) meets at tap t the source's pixel (y * step + dy[t],
// x * step + dx[t]).
struct PixelProduct {
  Extent from;  // the source
  Extent to;    // pixels of the result, of which these are every `spacing`-th from (y, x) on
  uint32_t height, width;
  uint32_t y, x, spacing;
  uint32_t step;
  uint32_t taps;
  const int8_t* source;
  const int8_t* source_low;  // null: `source` has signs
  const int8_t* weights;     // [client][column][tap][channel]
  size_t weights_step;       // between columns
  size_t weights_client;
  float* result;
  const float* factor;  // of the fixed point
  bool adds;
  int8_t dy[kMaxTaps], dx[kMaxTaps];
};

template <unsigned kColumns>
__global__ void __launch_bounds__(kColumns * 2) multiply_pixels(Cohort cohort, const PixelProduct p) {
  constexpr unsigned kThreads = kColumns * 2;
  constexpr unsigned kStage = (kRows + kColumns) * kDepth;
  constexpr unsigned kOwnRows = kRows * kChunks / kThreads;
  constexpr unsigned kOwnColumns = kColumns * kChunks / kThreads;
  BITFED_SHARED(int8_t, tiles);
  const uint32_t client = blockIdx.z;
  const uint32_t per_image = p.height * p.width;
  const uint32_t rows = cohort.images[client] * per_image;
  const uint32_t first_row = blockIdx.x * kRows;
  const uint32_t first_column = blockIdx.y * kColumns;
  if (first_row >= rows) return;
  const uint32_t channels = p.from.channels;
  const uint32_t depth = p.taps * channels;
  const uint32_t tiles_deep = (depth + kDepth - 1) / kDepth;
  const uint32_t passes = p.source_low == nullptr ? 1 : 2;

  // A thread copies the same chunk of some rows and columns of every tile.
  const unsigned chunk = threadIdx.x % kChunks;
  int row_y[kOwnRows];
  int row_x[kOwnRows];
  size_t row_image[kOwnRows];
#pragma unroll
  for (unsigned i = 0; i < kOwnRows; ++i) {
    const uint32_t row = first_row + threadIdx.x / kChunks + i * (kThreads / kChunks);
    const bool inside = row < rows;
    row_y[i] = inside ? static_cast<int>(row % per_image / p.width * p.step) : -1000000;
    row_x[i] = static_cast<int>(row % p.width * p.step);
    row_image[i] = inside ? (client * size_t{cohort.batch} + row / per_image) * p.from.pixels() : 0;
  }
  const auto copy_tile = [&](uint32_t number) {
    int8_t* a = tiles + number % kStages * kStage;
    int8_t* b = a + kRows * kDepth;
    const uint32_t k = number % tiles_deep * kDepth + chunk * kChunk;
    const uint32_t tap = k / channels;
    const uint32_t channel = k % channels;
    const bool deep = k < depth;
    const int8_t* source = number < tiles_deep ? p.source : p.source_low;
    const int dy = deep ? p.dy[tap] : 0;
    const int dx = deep ? p.dx[tap] : 0;
#pragma unroll
    for (unsigned i = 0; i < kOwnRows; ++i) {
      const int y = row_y[i] + dy;
      const int x = row_x[i] + dx;
      const bool inside = deep && y >= 0 && x >= 0 && y < static_cast<int>(p.from.height) &&
                          x < static_cast<int>(p.from.width);
      const int8_t* from =
          inside ? source + (row_image[i] + size_t(y) * p.from.width + size_t(x)) * channels + channel
                 : source;
      copy_chunk(a + tile_offset(threadIdx.x / kChunks + i * (kThreads / kChunks), chunk), from, inside);
    }
#pragma unroll
    for (unsigned i = 0; i < kOwnColumns; ++i) {
      const unsigned place = threadIdx.x / kChunks + i * (kThreads / kChunks);
      const bool inside = deep && first_column + place < p.to.channels;
      const int8_t* from =
          inside ? p.weights + client * p.weights_client + (first_column + place) * p.weights_step + k
                 : p.weights;
      copy_chunk(b + tile_offset(place, chunk), from, inside);
    }
  };

  const unsigned warp = threadIdx.x / 32;
  const unsigned warp_row = warp % 2 * 64;
  const unsigned warp_column = warp / 2 * 32;
  int sums[4][4][4] = {};
  const uint32_t all_tiles = passes * tiles_deep;
#pragma unroll
  for (uint32_t i = 0; i + 1 < kStages; ++i) {
    if (i < all_tiles) copy_tile(i);
    commit_copies();
  }
  for (uint32_t number = 0; number < all_tiles; ++number) {
    wait_for_copies<kStages - 2>();
    __syncthreads();
    if (number + kStages - 1 < all_tiles) copy_tile(number + kStages - 1);
    commit_copies();
    const int8_t* a = tiles + number % kStages * kStage;
    const int8_t* b = a + kRows * kDepth;
    if (number < tiles_deep) {
      multiply_warp<false>(a, b, warp_row, warp_column, sums);
    } else {
      if (number == tiles_deep) {
#pragma unroll
        for (auto& m : sums) {
#pragma unroll
          for (auto& n : m) {
#pragma unroll
            for (int& sum : n) sum = static_cast<int>(static_cast<unsigned>(sum) << 8);
          }
        }
      }
      multiply_warp<true>(a, b, warp_row, warp_column, sums);
    }
  }

  const unsigned lane = threadIdx.x % 32;
  const float factor = p.factor == nullptr ? 1.0f : 1 / p.factor[client];
  const bool nothing = p.factor != nullptr && !(p.factor[client] > 0);  // see fixed_point
  if (nothing && p.adds && p.factor[client] == 0) return;
#pragma unroll
  for (unsigned m = 0; m < 4; ++m) {
#pragma unroll
    for (unsigned half = 0; half < 2; ++half) {
      const uint32_t row = first_row + warp_row + 16 * m + lane / 4 + 8 * half;
      if (row >= rows) continue;
      const size_t image = client * size_t{cohort.batch} + row / per_image;
      const size_t y = p.y + row % per_image / p.width * p.spacing;
      const size_t x = p.x + row % p.width * p.spacing;
      float* to = p.result + ((image * p.to.height + y) * p.to.width + x) * p.to.channels;
#pragma unroll
      for (unsigned n = 0; n < 4; ++n) {
#pragma unroll
        for (unsigned i = 0; i < 2; ++i) {
          const uint32_t column = first_column + warp_column + 8 * n + 2 * (lane % 4) + i;
          if (column >= p.to.channels) continue;
          float value = static_cast<float>(sums[m][n][2 * half + i]);
          if (p.factor != nullptr) value = nothing ? p.factor[client] : value * factor;
          to[column] = p.adds ? to[column] + value : value;
        }
      }
    }
  }
}

// ------------------------------------------------------------------------------------------------ weights
// Four words of four bytes each, transposed: byte j of word i becomes byte i of word j.
struct FourWords {
  unsigned v[4];

  BITFED_FORMULA void transpose() {
    const unsigned ab_low = __byte_perm(v[0], v[1], 0x5140);
    const unsigned ab_high = __byte_perm(v[0], v[1], 0x7362);
    const unsigned cd_low = __byte_perm(v[2], v[3], 0x5140);
    const unsigned cd_high = __byte_perm(v[2], v[3], 0x7362);
    v[0] = __byte_perm(ab_low, cd_low, 0x5410);
    v[1] = __byte_perm(ab_low, cd_low, 0x7632);
    v[2] = __byte_perm(ab_high, cd_high, 0x5410);
    v[3] = __byte_perm(ab_high, cd_high, 0x7632);
  }
  // As rows `row` to row + 3 of a tile, at bytes `at` to at + 3.
  BITFED_FORMULA void store(int8_t* tile, unsigned row, unsigned at) const {
#pragma unroll
    for (unsigned i = 0; i < 4; ++i)
      *reinterpret_cast<unsigned*>(tile + tile_offset(row + i, at / kChunk) + at % kChunk) = v[i];
  }
};

constexpr unsigned kFilters = 64;   // of a block
constexpr unsigned kColumns = 128;  // [tap][channel] of a block
constexpr unsigned kWeightThreads = 256;

// sums[filter][tap][channel] += gradients of the filter's pixels times the signs that the tap meets, over a
// share of the pixels. Bytes of four neighbouring pixels become neighbours on their way into shared memory.
__global__ void __launch_bounds__(kWeightThreads, 2)
    multiply_weights(Cohort cohort, SignConvolution c, uint32_t shares) {
  BITFED_SHARED(int8_t, tiles);
  int8_t* high = tiles;
  int8_t* low = high + kFilters * kDepth;
  int8_t* signs = low + kFilters * kDepth;
  const uint32_t client = blockIdx.z;
  const uint32_t inputs = c.kernel.taps() * c.in.channels;
  const uint32_t column_tiles = (inputs + kColumns - 1) / kColumns;
  const uint32_t first_filter = blockIdx.x / column_tiles * kFilters;
  const uint32_t first_column = blockIdx.x % column_tiles * kColumns;
  const uint32_t pixels = static_cast<uint32_t>(c.out.pixels());
  const uint32_t all = cohort.images[client] * pixels;
  const uint32_t tiles_deep = (all + kDepth - 1) / kDepth;
  const uint32_t first_tile = static_cast<uint32_t>(uint64_t{tiles_deep} * blockIdx.y / shares);
  const uint32_t last_tile = static_cast<uint32_t>(uint64_t{tiles_deep} * (blockIdx.y + 1) / shares);
  if (first_tile == last_tile || !(c.factor[client] > 0)) return;
  const size_t of_client = client * size_t{cohort.batch};
  const bool rows_of_four = c.out.width % 4 == 0;  // four pixels lie in one row

  // Gradients: channels `four` to four + 3 at four pixels. Signs: columns likewise, of two groups of pixels.
  const unsigned four = threadIdx.x % (kFilters / 4) * 4;
  const unsigned gradient_pixel = threadIdx.x / (kFilters / 4) * 4;
  const bool has_filter = first_filter + four < c.out.channels;
  const unsigned own_column = threadIdx.x % (kColumns / 4) * 4;
  const unsigned sign_pixel = threadIdx.x / (kColumns / 4) * 4;
  const uint32_t column = first_column + own_column;
  const bool has_column = column < inputs;
  const uint32_t tap = column / c.in.channels;
  const int dy = static_cast<int>(tap / c.kernel.side) - static_cast<int>(c.kernel.padding);
  const int dx = static_cast<int>(tap % c.kernel.side) - static_cast<int>(c.kernel.padding);
  const int stride = static_cast<int>(c.kernel.stride);
  const int8_t* source = c.x + of_client * c.in.floats() + column % c.in.channels;
  const int8_t* of_high = c.high + of_client * c.out.floats() + first_filter + four;
  const uint8_t* of_low = c.low + of_client * c.out.floats() + first_filter + four;

  FourWords highs, lows, ours[2];
  const auto load = [&](uint32_t tile) {
#pragma unroll
    for (unsigned j = 0; j < 4; ++j) {
      const uint32_t pixel = tile * kDepth + gradient_pixel + j;
      const bool inside = has_filter && pixel < all;
      highs.v[j] = inside ? *reinterpret_cast<const unsigned*>(of_high + size_t{pixel} * c.out.channels) : 0;
      lows.v[j] = inside ? *reinterpret_cast<const unsigned*>(of_low + size_t{pixel} * c.out.channels) : 0;
    }
#pragma unroll
    for (unsigned i = 0; i < 2; ++i) {
      const uint32_t first = tile * kDepth + sign_pixel + 32 * i;
      uint32_t image = first / pixels;
      int y = static_cast<int>(first % pixels / c.out.width) * stride + dy;
      int x = static_cast<int>(first % c.out.width) * stride + dx;
#pragma unroll
      for (unsigned j = 0; j < 4; ++j) {
        if (j > 0 && rows_of_four) {
          x += stride;
        } else if (j > 0) {
          image = (first + j) / pixels;
          y = static_cast<int>((first + j) % pixels / c.out.width) * stride + dy;
          x = static_cast<int>((first + j) % c.out.width) * stride + dx;
        }
        const bool met = has_column && first + j < all && y >= 0 && x >= 0 &&
                         y < static_cast<int>(c.in.height) && x < static_cast<int>(c.in.width);
        const size_t from = (image * c.in.pixels() + size_t(y) * c.in.width + size_t(x)) * c.in.channels;
        ours[i].v[j] = met ? *reinterpret_cast<const unsigned*>(source + from) : 0;
      }
    }
  };
  const unsigned warp = threadIdx.x / 32;
  const unsigned warp_row = warp % 2 * 32;
  const unsigned warp_column = warp / 2 * 32;
  int high_sums[2][4][4] = {};
  int low_sums[2][4][4] = {};
  load(first_tile);
  for (uint32_t tile = first_tile; tile < last_tile; ++tile) {
    __syncthreads();
    highs.transpose();
    lows.transpose();
    highs.store(high, four, gradient_pixel);
    lows.store(low, four, gradient_pixel);
#pragma unroll
    for (unsigned i = 0; i < 2; ++i) {
      ours[i].transpose();
      ours[i].store(signs, own_column, sign_pixel + 32 * i);
    }
    __syncthreads();
    if (tile + 1 < last_tile) load(tile + 1);
    multiply_warp<false>(high, signs, warp_row, warp_column, high_sums);
    multiply_warp<true>(low, signs, warp_row, warp_column, low_sums);
  }
  const unsigned lane = threadIdx.x % 32;
#pragma unroll
  for (unsigned m = 0; m < 2; ++m) {
#pragma unroll
    for (unsigned n = 0; n < 4; ++n) {
#pragma unroll
      for (unsigned i = 0; i < 4; ++i) {
        const uint32_t filter = first_filter + warp_row + 16 * m + lane / 4 + 8 * (i / 2);
        const uint32_t at = first_column + warp_column + 8 * n + 2 * (lane % 4) + i % 2;
        if (filter >= c.out.channels || at >= inputs) continue;
        const unsigned sum =
            (static_cast<unsigned>(high_sums[m][n][i]) << 8) + static_cast<unsigned>(low_sums[m][n][i]);
        atomicAdd(c.sums + (client * size_t{c.out.channels} + filter) * inputs + at, static_cast<int>(sum));
      }
    }
  }
}

// ------------------------------------------------------------------------------------------------ fixed
// point
__global__ void largest_of_all(Cohort cohort, Extent extent, const float* x, uint32_t* largest) {
  BITFED_SHARED(unsigned, shared);
  const uint32_t client = blockIdx.y;
  const size_t count = cohort.images[client] * extent.floats();
  const float* from = x + client * cohort.batch * extent.floats();
  unsigned found = 0;
  for (size_t at = size_t{blockIdx.x} * blockDim.x + threadIdx.x; at < count;
       at += size_t{gridDim.x} * blockDim.x) {
    const unsigned bits = __float_as_uint(from[at]) & 0x7fffffffu;
    found = bits > found ? bits : found;
  }
  take_largest(__uint_as_float(found), shared, largest + client);
}

// The largest factor with which gradients fit 16 bits and their sums 32. 0 where all gradients are 0, not a
// number where one is not finite: then there are no products, and all results become that.
__global__ void fixed_point(Cohort cohort, SignConvolution c) {
  const uint32_t client = threadIdx.x;
  if (client >= cohort.clients) return;
  const float largest = largest_found(c.largest[client]);
  const size_t of_pixels = cohort.images[client] * c.out.pixels();
  const size_t of_taps = size_t{c.kernel.taps()} * c.out.channels;
  const size_t depth = of_pixels > of_taps ? of_pixels : of_taps;
  const size_t max = size_t{INT32_MAX} / depth < INT16_MAX ? size_t{INT32_MAX} / depth : size_t{INT16_MAX};
  c.factor[client] = largest > 0 ? static_cast<float>(max) / largest : largest;
}

__global__ void quantise(Cohort cohort, SignConvolution c, const float* gradient) {
  const uint32_t client = blockIdx.y;
  const float factor = c.factor[client];
  const size_t at = 4 * (size_t{blockIdx.x} * blockDim.x + threadIdx.x);
  if (at >= cohort.images[client] * c.out.floats() || !(factor > 0)) return;
  const size_t whole = client * cohort.batch * c.out.floats() + at;
  const float4 four = *reinterpret_cast<const float4*>(gradient + whole);
  const int v[4] = {__float2int_rn(four.x * factor), __float2int_rn(four.y * factor),
                    __float2int_rn(four.z * factor), __float2int_rn(four.w * factor)};
  unsigned high = 0;
  unsigned low = 0;
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    high |= static_cast<unsigned>(v[i] >> 8 & 0xff) << (8 * i);
    low |= static_cast<unsigned>(v[i] & 0xff) << (8 * i);
  }
  *reinterpret_cast<unsigned*>(c.high + whole) = high;
  *reinterpret_cast<unsigned*>(c.low + whole) = low;
}

// The order of taps in `transposed`.
struct TapOrder {
  uint32_t taps;
  uint8_t tap[kMaxTaps];
};

__global__ void transpose_weights(SignConvolution c, const TapOrder order) {
  BITFED_SHARED(int8_t, tile);  // [channel][filter], 33 apart
  const uint32_t client = blockIdx.z / order.taps;
  const uint32_t place = blockIdx.z % order.taps;
  const uint32_t filters = c.out.channels;
  const uint32_t channels = c.in.channels;
  const size_t of_client = client * size_t{filters} * order.taps * channels;
  for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) {
    const uint32_t filter = blockIdx.x * 32 + i / 32;
    const uint32_t channel = blockIdx.y * 32 + i % 32;
    if (filter < filters && channel < channels)
      tile[i % 32 * 33 + i / 32] =
          c.weights[of_client + (size_t{filter} * order.taps + order.tap[place]) * channels + channel];
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) {
    const uint32_t filter = blockIdx.x * 32 + i % 32;
    const uint32_t channel = blockIdx.y * 32 + i / 32;
    if (filter < filters && channel < channels)
      c.transposed[of_client + (size_t{channel} * order.taps + place) * filters + filter] =
          tile[i / 32 * 33 + i % 32];
  }
}

__global__ void fill_pixels(Cohort cohort, const PixelProduct p) {
  const uint32_t client = blockIdx.y;
  const size_t at = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const uint32_t channels = p.to.channels;
  if (at >= size_t{cohort.images[client]} * p.height * p.width * channels) return;
  const size_t row = at / channels;
  const size_t image = client * size_t{cohort.batch} + row / (p.height * p.width);
  const size_t y = p.y + row / p.width % p.height * p.spacing;
  const size_t x = p.x + row % p.width * p.spacing;
  const float factor = p.factor[client];
  p.result[((image * p.to.height + y) * p.to.width + x) * channels + at % channels] =
      factor > 0 ? 0.0f : factor;
}

void launch_pixels(const Cohort& cohort, const PixelProduct& p, const Stream& stream) {
  const size_t rows = size_t{cohort.batch} * p.height * p.width;
  const size_t blocks = (rows + kRows - 1) / kRows;
  if (p.to.channels <= 64) {
    launch(multiply_pixels<64>, Blocks{blocks, (p.to.channels + 63) / 64, cohort.clients}, 128,
           kStages * (kRows + 64) * kDepth, stream, cohort, p);
  } else {
    launch(multiply_pixels<128>, Blocks{blocks, (p.to.channels + 127) / 128, cohort.clients}, 256,
           kStages * (kRows + 128) * kDepth, stream, cohort, p);
  }
}

// The taps that bring a pixel of the phase to some output, the last first, see ConvolutionPhase.
std::vector<uint32_t> phase_taps(const Kernel& kernel, uint32_t phase) {
  std::vector<uint32_t> taps;
  for (uint32_t tap = kernel.side; tap-- > 0;) {
    if ((phase + kernel.padding) % kernel.stride == tap % kernel.stride) taps.push_back(tap);
  }
  return taps;
}

void input_gradient(const Cohort& cohort, const SignConvolution& c, bool adds, float* x_gradient,
                    const Stream& stream) {
  const uint32_t stride = c.kernel.stride;
  const auto pixels = [&](uint32_t side, uint32_t phase) {
    return phase < side ? (side - phase - 1) / stride + 1 : 0;
  };
  uint32_t place = 0;  // of the phase's first tap in `transposed`
  for (uint32_t y = 0; y < stride; ++y) {
    for (uint32_t x = 0; x < stride; ++x) {
      PixelProduct p{};
      p.from = c.out;
      p.to = c.in;
      p.height = pixels(c.in.height, y);
      p.width = pixels(c.in.width, x);
      p.y = y;
      p.x = x;
      p.spacing = stride;
      p.step = 1;
      for (const uint32_t tap_y : phase_taps(c.kernel, y)) {
        for (const uint32_t tap_x : phase_taps(c.kernel, x)) {
          // Pixel y + stride i meets output i + (y + padding - tap) / stride, which is whole.
          const auto away = [&](uint32_t at, uint32_t tap) {
            return static_cast<int8_t>((static_cast<int>(at + c.kernel.padding) - static_cast<int>(tap)) /
                                       static_cast<int>(stride));
          };
          p.dy[p.taps] = away(y, tap_y);
          p.dx[p.taps] = away(x, tap_x);
          ++p.taps;
        }
      }
      p.source = c.high;
      p.source_low = reinterpret_cast<const int8_t*>(c.low);
      p.weights = c.transposed + size_t{place} * c.out.channels;
      p.weights_step = size_t{c.kernel.taps()} * c.out.channels;
      p.weights_client = p.weights_step * c.in.channels;
      p.result = x_gradient;
      p.factor = c.factor;
      p.adds = adds;
      place += p.taps;
      if (p.height * p.width == 0) continue;
      if (p.taps > 0) {
        launch_pixels(cohort, p, stream);
      } else if (!adds) {
        const size_t values = size_t{cohort.batch} * p.height * p.width * p.to.channels;
        launch(fill_pixels, Blocks{(values + 255) / 256, cohort.clients}, 256, 0, stream, cohort, p);
      }
    }
  }
}

TapOrder tap_order(const Kernel& kernel) {
  TapOrder order{};
  for (uint32_t y = 0; y < kernel.stride; ++y) {
    for (uint32_t x = 0; x < kernel.stride; ++x) {
      for (const uint32_t tap_y : phase_taps(kernel, y)) {
        for (const uint32_t tap_x : phase_taps(kernel, x))
          order.tap[order.taps++] = static_cast<uint8_t>(tap_y * kernel.side + tap_x);
      }
    }
  }
  return order;
}

}  // namespace

void sign_convolution_forward(const Cohort& cohort, const SignConvolution& c, const Stream& stream) {
  PixelProduct p{};
  p.from = c.in;
  p.to = c.out;
  p.height = c.out.height;
  p.width = c.out.width;
  p.spacing = 1;
  p.step = c.kernel.stride;
  p.taps = c.kernel.taps();
  for (uint32_t tap = 0; tap < p.taps; ++tap) {
    p.dy[tap] =
        static_cast<int8_t>(static_cast<int>(tap / c.kernel.side) - static_cast<int>(c.kernel.padding));
    p.dx[tap] =
        static_cast<int8_t>(static_cast<int>(tap % c.kernel.side) - static_cast<int>(c.kernel.padding));
  }
  p.source = c.x;
  p.weights = c.weights;
  p.weights_step = size_t{p.taps} * c.in.channels;
  p.weights_client = p.weights_step * c.out.channels;
  p.result = c.y;
  launch_pixels(cohort, p, stream);
}

void sign_convolution_largest(const Cohort& cohort, const SignConvolution& c, const float* gradient,
                              const Stream& stream) {
  const size_t blocks = (cohort.batch * c.out.floats() + 4095) / 4096;
  launch(largest_of_all, Blocks{blocks, cohort.clients}, 256, 256 * sizeof(unsigned), stream, cohort, c.out,
         gradient, c.largest);
}

void sign_convolution_backward(const Cohort& cohort, const SignConvolution& c, const float* gradient,
                               bool adds, float* x_gradient, const Stream& stream) {
  launch(fixed_point, Blocks{}, 64, 0, stream, cohort, c);
  const size_t fours = cohort.batch * c.out.floats() / 4;
  launch(quantise, Blocks{(fours + 255) / 256, cohort.clients}, 256, 0, stream, cohort, c, gradient);
  const uint32_t inputs = c.kernel.taps() * c.in.channels;
  const size_t tiles =
      size_t{(c.out.channels + kFilters - 1) / kFilters} * ((inputs + kColumns - 1) / kColumns);
  const size_t deep = (cohort.batch * c.out.pixels() + kDepth - 1) / kDepth;
  // Enough blocks for the whole device, each with work for a while.
  size_t shares = 1024 / (tiles * cohort.clients) + 1;
  if (shares > (deep + 15) / 16) shares = (deep + 15) / 16;
  launch(multiply_weights, Blocks{tiles, shares, cohort.clients}, kWeightThreads,
         (2 * kFilters + kColumns) * kDepth, stream, cohort, c, static_cast<uint32_t>(shares));
  if (x_gradient == nullptr) return;
  launch(
      transpose_weights,
      Blocks{(c.out.channels + 31) / 32, (c.in.channels + 31) / 32, size_t{cohort.clients} * c.kernel.taps()},
      256, 32 * 33, stream, c, tap_order(c.kernel));
  input_gradient(cohort, c, adds, x_gradient, stream);
}

}  // namespace bitfed::cuda
