// The gradients of a convolution of signs: their fixed point, and the weights' gradients on the tensor cores.
// These sum over pixels, which must lie next to each other in memory for that: gradients and signs are
// written once more as lines, [channel][row of the image][image][column], the signs once per column of the
// kernel, with zeros where it reaches beyond the image. A row of the kernel then is a number of lines to go
// up or down.

#include "bitfed/cuda/kernels.h"
#include "bitfed/cuda/tiles.h"

namespace bitfed::cuda {
namespace {

constexpr unsigned kLinePart = 128;            // of a line, by a block
constexpr unsigned kPartStep = kLinePart + 4;  // between channels in shared memory
constexpr unsigned kGradientChannels = 32;     // of a block
constexpr unsigned kSignChannels = 64;
constexpr unsigned kColumns = 128;  // [tap][channel] of a block that multiplies

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
BITFED_FORMULA float fixed_point(const Cohort& cohort, const SignConvolution& c, uint32_t client) {
  const float largest = largest_found(c.largest[client]);
  const size_t of_pixels = cohort.images[client] * c.out.pixels();
  const size_t of_taps = size_t{c.kernel.taps()} * c.out.channels;
  const size_t depth = of_pixels > of_taps ? of_pixels : of_taps;
  const size_t max = size_t{INT32_MAX} / depth < INT16_MAX ? size_t{INT32_MAX} / depth : size_t{INT16_MAX};
  return largest > 0 ? static_cast<float>(max) / largest : largest;
}

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
  // Bytes of four channels at four places of a line, from the words of four places.
  BITFED_FORMULA void store(int8_t* part, unsigned channel, unsigned place) {
    transpose();
#pragma unroll
    for (unsigned i = 0; i < 4; ++i)
      *reinterpret_cast<unsigned*>(part + (channel + i) * kPartStep + place) = v[i];
  }
};

// A part of some channels' lines from shared memory. `to`: of the first channel, channels `step` apart.
BITFED_FORMULA void write_lines(const int8_t* part, uint32_t channels, uint32_t bytes, int8_t* to,
                                size_t step) {
  const unsigned chunk = threadIdx.x % kChunks * kChunk;
  for (unsigned channel = threadIdx.x / kChunks; channel < channels; channel += kRowsAtOnce) {
    if (chunk >= bytes) continue;
    const auto* from = reinterpret_cast<const unsigned*>(part + channel * kPartStep + chunk);
    *reinterpret_cast<uint4*>(to + channel * step + chunk) = uint4{from[0], from[1], from[2], from[3]};
  }
}

// How much of the line's part that begins at `first` a client with so many images has, in whole chunks.
BITFED_FORMULA uint32_t part_bytes(uint32_t images, uint32_t width, uint32_t first) {
  const uint32_t used = (images * width + kChunk - 1) / kChunk * kChunk;
  return used < first ? 0 : used - first;
}

// Gradients in fixed point: as lines, and, with `pixels`, in the order of pixels, too. And their factor.
__global__ void __launch_bounds__(kThreads)
    quantise(Cohort cohort, SignConvolution c, const float* gradient, bool pixels) {
  BITFED_SHARED(int8_t, high);
  int8_t* low = high + kGradientChannels * kPartStep;
  const uint32_t client = blockIdx.z;
  const float factor = fixed_point(cohort, c, client);
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) c.factor[client] = factor;
  const uint32_t parts = (c.line(cohort) + kLinePart - 1) / kLinePart;
  const uint32_t first = blockIdx.x % parts * kLinePart;
  const uint32_t first_channel = blockIdx.x / parts * kGradientChannels;
  const uint32_t bytes = part_bytes(cohort.images[client], c.out.width, first);
  if (bytes == 0 || !(factor > 0)) return;
  const unsigned four = threadIdx.x % (kGradientChannels / 4) * 4;
  const unsigned place = threadIdx.x / (kGradientChannels / 4) * 4;
  FourWords highs;
  FourWords lows;
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    const uint32_t image = (first + place + i) / c.out.width;
    const uint32_t x = (first + place + i) % c.out.width;
    const bool inside = image < cohort.images[client] && first_channel + four < c.out.channels;
    const size_t at =
        (((client * size_t{cohort.batch} + image) * c.out.height + blockIdx.y) * c.out.width + x) *
            c.out.channels +
        first_channel + four;
    const float4 v = inside ? *reinterpret_cast<const float4*>(gradient + at) : float4{0, 0, 0, 0};
    const int whole[4] = {__float2int_rn(v.x * factor), __float2int_rn(v.y * factor),
                          __float2int_rn(v.z * factor), __float2int_rn(v.w * factor)};
    highs.v[i] = 0;
    lows.v[i] = 0;
#pragma unroll
    for (unsigned j = 0; j < 4; ++j) {
      highs.v[i] |= static_cast<unsigned>(whole[j] >> 8 & 0xff) << (8 * j);
      lows.v[i] |= static_cast<unsigned>(whole[j] & 0xff) << (8 * j);
    }
    if (pixels && inside) {
      *reinterpret_cast<unsigned*>(c.high + at) = highs.v[i];
      *reinterpret_cast<unsigned*>(c.low + at) = lows.v[i];
    }
  }
  highs.store(high, four, place);
  lows.store(low, four, place);
  __syncthreads();
  const uint32_t rest = c.out.channels - first_channel;
  const uint32_t channels = rest < kGradientChannels ? rest : kGradientChannels;
  const size_t step = size_t{c.out.height} * c.line(cohort);
  const size_t to =
      (client * size_t{c.out.channels} + first_channel) * step + size_t{blockIdx.y} * c.line(cohort) + first;
  write_lines(high, channels, bytes, c.high_lines + to, step);
  write_lines(low, channels, bytes, c.low_lines + to, step);
}

// Signs as lines, for one column of the kernel.
__global__ void __launch_bounds__(kThreads) write_sign_lines(Cohort cohort, SignConvolution c) {
  BITFED_SHARED(int8_t, part);
  const uint32_t client = blockIdx.z / c.kernel.side;
  const uint32_t column = blockIdx.z % c.kernel.side;
  const uint32_t parts = (c.line(cohort) + kLinePart - 1) / kLinePart;
  const uint32_t first = blockIdx.x % parts * kLinePart;
  const uint32_t first_channel = blockIdx.x / parts * kSignChannels;
  const uint32_t bytes = part_bytes(cohort.images[client], c.out.width, first);
  if (bytes == 0 || !(c.factor[client] > 0)) return;
  const unsigned four = threadIdx.x % (kSignChannels / 4) * 4;
  constexpr unsigned kPlaces = kThreads / (kSignChannels / 4) * 4;  // at once
  for (unsigned place = threadIdx.x / (kSignChannels / 4) * 4; place < kLinePart; place += kPlaces) {
    FourWords words;
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      const uint32_t image = (first + place + i) / c.out.width;
      const int x = static_cast<int>((first + place + i) % c.out.width * c.kernel.stride + column) -
                    static_cast<int>(c.kernel.padding);
      const bool inside = image < cohort.images[client] && first_channel + four < c.in.channels && x >= 0 &&
                          x < static_cast<int>(c.in.width);
      const size_t at =
          (((client * size_t{cohort.batch} + image) * c.in.height + blockIdx.y) * c.in.width + size_t(x)) *
              c.in.channels +
          first_channel + four;
      words.v[i] = inside ? *reinterpret_cast<const unsigned*>(c.x + at) : 0;
    }
    words.store(part, four, place);
  }
  __syncthreads();
  const uint32_t rest = c.in.channels - first_channel;
  const size_t step = size_t{c.in.height} * c.line(cohort);
  const size_t to = ((size_t{client} * c.kernel.side + column) * c.in.channels + first_channel) * step +
                    size_t{blockIdx.y} * c.line(cohort) + first;
  write_lines(part, rest < kSignChannels ? rest : kSignChannels, bytes, c.sign_lines + to, step);
}

// The sums over a share of the pixels: gradients of 64 filters' pixels times the signs that 128 pairs of tap
// and channel meet. One group multiplies the high bytes, the other the low ones.
__global__ void __launch_bounds__(kThreads, 2)
    multiply_weights(Cohort cohort, SignConvolution c, uint32_t shares) {
  constexpr unsigned kOwnRows = kRows / kRowsAtOnce;
  constexpr unsigned kOwnColumns = kColumns / kRowsAtOnce;
  BITFED_SHARED(int8_t, shared);
  const uint32_t client = blockIdx.z;
  const uint32_t inputs = c.kernel.taps() * c.in.channels;
  const uint32_t column_tiles = (inputs + kColumns - 1) / kColumns;
  const uint32_t first_filter = blockIdx.x / column_tiles * kGroupRows;
  const uint32_t first_column = blockIdx.x % column_tiles * kColumns;
  const uint32_t line = c.line(cohort);
  const uint32_t of_line = (cohort.images[client] * c.out.width + kChunk - 1) / kChunk;  // chunks
  const uint32_t chunks = of_line * c.out.height;
  const uint32_t tiles_deep = (chunks + kChunks - 1) / kChunks;
  const auto first = static_cast<uint32_t>(uint64_t{tiles_deep} * blockIdx.y / shares);
  const auto last = static_cast<uint32_t>(uint64_t{tiles_deep} * (blockIdx.y + 1) / shares);
  if (first == last || !(c.factor[client] > 0)) return;

  // A thread copies one chunk of some rows of every tile: gradients of filters, high and low, and signs.
  const unsigned chunk = threadIdx.x % kChunks;
  const unsigned own = threadIdx.x / kChunks;
  const int8_t* of_gradients[kOwnRows];
#pragma unroll
  for (unsigned i = 0; i < kOwnRows; ++i) {
    const unsigned row = own + i * kRowsAtOnce;
    const uint32_t filter = first_filter + row % kGroupRows;
    const int8_t* lines = row < kGroupRows ? c.high_lines : c.low_lines;
    of_gradients[i] = filter < c.out.channels
                          ? lines + (client * size_t{c.out.channels} + filter) * c.out.height * line
                          : nullptr;
  }
  const int8_t* of_signs[kOwnColumns];
  int row_of_kernel[kOwnColumns];
#pragma unroll
  for (unsigned i = 0; i < kOwnColumns; ++i) {
    const uint32_t at = first_column + own + i * kRowsAtOnce;
    const uint32_t tap = at / c.in.channels;
    const uint32_t column = tap % c.kernel.side;
    row_of_kernel[i] =
        at < inputs ? static_cast<int>(tap / c.kernel.side) - static_cast<int>(c.kernel.padding) : -1000000;
    of_signs[i] =
        c.sign_lines +
        ((size_t{client} * c.kernel.side + column) * c.in.channels + at % c.in.channels) * c.in.height * line;
  }
  uint32_t y = (first * kChunks + chunk) / of_line;
  uint32_t along = (first * kChunks + chunk) % of_line;
  const auto copy = [&](uint32_t /*number*/, int8_t* a, int8_t* b) {
    const bool deep = y < c.out.height;
#pragma unroll
    for (unsigned i = 0; i < kOwnRows; ++i) {
      const bool inside = deep && of_gradients[i] != nullptr;
      copy_chunk(a + tile_offset(own + i * kRowsAtOnce, chunk),
                 inside ? of_gradients[i] + y * line + along * kChunk : c.high_lines, inside);
    }
#pragma unroll
    for (unsigned i = 0; i < kOwnColumns; ++i) {
      const int row = static_cast<int>(y * c.kernel.stride) + row_of_kernel[i];
      const bool inside = deep && row >= 0 && row < static_cast<int>(c.in.height);
      copy_chunk(b + tile_offset(own + i * kRowsAtOnce, chunk),
                 inside ? of_signs[i] + static_cast<uint32_t>(row) * line + along * kChunk : c.sign_lines,
                 inside);
    }
    for (along += kChunks; along >= of_line; along -= of_line) ++y;
  };
  const unsigned group = threadIdx.x / kGroup;
  int sums[kColumns / 8][4] = {};
  const auto multiply = [&](uint32_t /*number*/, const int8_t* a, const int8_t* b) {
    if (group == 0) {
      multiply_group<false, kColumns>(a, b, sums);
    } else {
      multiply_group<true, kColumns>(a + kGroupRows * kDepth, b, sums);
    }
  };
  int8_t* tiles = first_tile(shared);
  for_tiles<kColumns>(tiles, last - first, copy, multiply);

  // The second group's sums reach the first one through the tiles' memory.
  __syncthreads();
  auto* lows = reinterpret_cast<int*>(tiles);
  const unsigned thread = threadIdx.x % kGroup;
  if (group == 1) {
#pragma unroll
    for (unsigned n = 0; n < kColumns / 8; ++n) {
#pragma unroll
      for (unsigned i = 0; i < 4; ++i) lows[(n * 4 + i) * kGroup + thread] = sums[n][i];
    }
  }
  __syncthreads();
  if (group == 1) return;
  const unsigned lane = thread % 32;
#pragma unroll
  for (unsigned n = 0; n < kColumns / 8; ++n) {
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      const uint32_t filter = first_filter + thread / 32 * 16 + lane / 4 + 8 * (i / 2);
      const uint32_t at = first_column + 8 * n + 2 * (lane % 4) + i % 2;
      if (filter >= c.out.channels || at >= inputs) continue;
      const auto sum = static_cast<int>((static_cast<unsigned>(sums[n][i]) << 8) +
                                        static_cast<unsigned>(lows[(n * 4 + i) * kGroup + thread]));
      int* to = c.sums + (client * size_t{c.out.channels} + filter) * inputs + at;
      if (shares == 1) {
        *to = sum;
      } else {
        atomicAdd(to, sum);
      }
    }
  }
}

size_t line_parts(const Cohort& cohort, const SignConvolution& c) {
  return (c.line(cohort) + kLinePart - 1) / kLinePart;
}

size_t groups_of(uint32_t count, unsigned size) {
  return (count + size - 1) / size;
}

}  // namespace

void sign_convolution_largest(const Cohort& cohort, const SignConvolution& c, const float* gradient,
                              const Stream& stream) {
  const size_t blocks = (cohort.batch * c.out.floats() + 4095) / 4096;
  launch(largest_of_all, Blocks{blocks, cohort.clients}, 256, 256 * sizeof(unsigned), stream, cohort, c.out,
         gradient, c.largest);
}

void sign_convolution_quantise(const Cohort& cohort, const SignConvolution& c, const float* gradient,
                               bool for_input, const Stream& stream) {
  launch(quantise,
         Blocks{line_parts(cohort, c) * groups_of(c.out.channels, kGradientChannels), c.out.height,
                cohort.clients},
         kThreads, 2 * kGradientChannels * kPartStep, stream, cohort, c, gradient, for_input);
}

void sign_convolution_weights(const Cohort& cohort, const SignConvolution& c, const Stream& stream) {
  launch(write_sign_lines,
         Blocks{line_parts(cohort, c) * groups_of(c.in.channels, kSignChannels), c.in.height,
                size_t{cohort.clients} * c.kernel.side},
         kThreads, kSignChannels * kPartStep, stream, cohort, c);
  const uint32_t inputs = c.kernel.taps() * c.in.channels;
  const size_t tiles = groups_of(c.out.channels, kGroupRows) * groups_of(inputs, kColumns);
  const size_t deep = (size_t{c.line(cohort)} * c.out.height + kDepth - 1) / kDepth;
  // Enough blocks for the whole device, each with work for a while.
  size_t shares = 1024 / (tiles * cohort.clients) + 1;
  if (shares > (deep + 7) / 8) shares = (deep + 7) / 8;
  if (shares > 1) stream.clear(c.sums, size_t{cohort.clients} * c.out.channels * inputs * sizeof(int32_t));
  launch(multiply_weights, Blocks{tiles, shares, cohort.clients}, kThreads, tiles_bytes<kColumns>(), stream,
         cohort, c, static_cast<uint32_t>(shares));
}

}  // namespace bitfed::cuda
