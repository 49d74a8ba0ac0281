// Convolutions of signs with signs, and the gradients of their inputs, on the tensor cores: sums of bytes,
// exact in whatever order. A gradient in fixed point is 256 * high + low, a signed and an unsigned byte; the
// sums of the high bytes are shifted before the low ones are added. 32-bit sums wrap around within, and end
// in range.

#include <vector>

#include "bitfed/cuda/kernels.h"
#include "bitfed/cuda/tiles.h"

namespace bitfed::cuda {
namespace {

constexpr unsigned kMaxTaps = 225;

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
  int16_t* whole_result;  // instead of `result`
  const float* factor;    // of the fixed point
  bool adds;
  int8_t dy[kMaxTaps], dx[kMaxTaps];
};

// Two or three blocks at a time have registers and shared memory enough.
template <unsigned kColumns>
__global__ void __launch_bounds__(kThreads, kColumns == 64 ? 3 : 2)
    multiply_pixels(Cohort cohort, const PixelProduct p) {
  constexpr unsigned kOwnRows = kRows / kRowsAtOnce;
  constexpr unsigned kOwnColumns = kColumns / kRowsAtOnce;
  BITFED_SHARED(int8_t, shared);
  const uint32_t client = blockIdx.z;
  const uint32_t per_image = p.height * p.width;
  const uint32_t rows = cohort.images[client] * per_image;
  const uint32_t first_row = blockIdx.x * kRows;
  const uint32_t first_column = blockIdx.y * kColumns;
  if (first_row >= rows) return;
  const uint32_t channels = p.from.channels;
  const uint32_t depth = p.taps * channels;
  const uint32_t tiles_deep = (depth + kDepth - 1) / kDepth;

  // A thread copies the same chunk of some rows and columns of every tile.
  const unsigned chunk = threadIdx.x % kChunks;
  const unsigned own = threadIdx.x / kChunks;
  int row_y[kOwnRows];
  int row_x[kOwnRows];
  uint32_t row_image[kOwnRows];
#pragma unroll
  for (unsigned i = 0; i < kOwnRows; ++i) {
    const uint32_t row = first_row + own + i * kRowsAtOnce;
    const bool inside = row < rows;
    row_y[i] = inside ? static_cast<int>(row % per_image / p.width * p.step) : -1000000;
    row_x[i] = static_cast<int>(row % p.width * p.step);
    row_image[i] = inside ? row / per_image * static_cast<uint32_t>(p.from.pixels()) : 0;
  }
  const size_t of_client = client * size_t{cohort.batch} * p.from.floats();
  const int8_t* source = p.source + of_client;
  const int8_t* weights = p.weights + client * p.weights_client + (first_column + own) * p.weights_step;
  const uint32_t first_tap = chunk * kChunk / channels;
  const uint32_t first_channel = chunk * kChunk % channels;
  uint32_t tap = first_tap;
  uint32_t channel = first_channel;
  const auto copy = [&](uint32_t number, int8_t* a, int8_t* b) {
    if (number == tiles_deep) {  // the low bytes, from the start
      source = p.source_low + of_client;
      tap = first_tap;
      channel = first_channel;
    }
    const bool deep = tap < p.taps;
    const int dy = deep ? p.dy[tap] : 0;
    const int dx = deep ? p.dx[tap] : 0;
#pragma unroll
    for (unsigned i = 0; i < kOwnRows; ++i) {
      const int y = row_y[i] + dy;
      const int x = row_x[i] + dx;
      const bool inside = deep && y >= 0 && x >= 0 && y < static_cast<int>(p.from.height) &&
                          x < static_cast<int>(p.from.width);
      const uint32_t pixel =
          row_image[i] + static_cast<uint32_t>(y) * p.from.width + static_cast<uint32_t>(x);
      copy_chunk(a + tile_offset(own + i * kRowsAtOnce, chunk),
                 inside ? source + size_t{pixel} * channels + channel : source, inside);
    }
    const uint32_t k = tap * channels + channel;
#pragma unroll
    for (unsigned i = 0; i < kOwnColumns; ++i) {
      const bool inside = deep && first_column + own + i * kRowsAtOnce < p.to.channels;
      copy_chunk(b + tile_offset(own + i * kRowsAtOnce, chunk),
                 inside ? weights + i * kRowsAtOnce * p.weights_step + k : p.weights, inside);
    }
    for (channel += kDepth; channel >= channels; channel -= channels) ++tap;
  };

  const unsigned group = threadIdx.x / kGroup;
  int sums[kColumns / 8][4] = {};
  const auto multiply = [&](uint32_t number, const int8_t* a, const int8_t* b) {
    if (number < tiles_deep) {
      multiply_group<false, kColumns>(a + group * kGroupRows * kDepth, b, sums);
      return;
    }
    if (number == tiles_deep) {
#pragma unroll
      for (auto& n : sums) {
#pragma unroll
        for (int& sum : n) sum = static_cast<int>(static_cast<unsigned>(sum) << 8);
      }
    }
    multiply_group<true, kColumns>(a + group * kGroupRows * kDepth, b, sums);
  };
  for_tiles<kColumns>(first_tile(shared), (p.source_low == nullptr ? 1 : 2) * tiles_deep, copy, multiply);

  const unsigned lane = threadIdx.x % 32;
  const float factor = p.factor == nullptr ? 1.0f : 1 / p.factor[client];
  const bool nothing = p.factor != nullptr && !(p.factor[client] > 0);  // see fixed_point
  if (nothing && p.adds && p.factor[client] == 0) return;
#pragma unroll
  for (unsigned half = 0; half < 2; ++half) {
    const uint32_t row = first_row + threadIdx.x / 32 * 16 + lane / 4 + 8 * half;
    if (row >= rows) continue;
    const size_t image = client * size_t{cohort.batch} + row / per_image;
    const size_t y = p.y + row % per_image / p.width * p.spacing;
    const size_t x = p.x + row % p.width * p.spacing;
    const size_t to = ((image * p.to.height + y) * p.to.width + x) * p.to.channels;
#pragma unroll
    for (unsigned n = 0; n < kColumns / 8; ++n) {
      const uint32_t column = first_column + 8 * n + 2 * (lane % 4);
      if (column >= p.to.channels) continue;
      if (p.whole_result != nullptr) {
        *reinterpret_cast<unsigned*>(p.whole_result + to + column) =
            (static_cast<unsigned>(sums[n][2 * half]) & 0xffff) | static_cast<unsigned>(sums[n][2 * half + 1])
                                                                      << 16;
        continue;
      }
      float2 value{static_cast<float>(sums[n][2 * half]), static_cast<float>(sums[n][2 * half + 1])};
      if (p.factor != nullptr) {
        value.x = nothing ? p.factor[client] : value.x * factor;
        value.y = nothing ? p.factor[client] : value.y * factor;
      }
      auto* at = reinterpret_cast<float2*>(p.result + to + column);
      if (p.adds) value = float2{at->x + value.x, at->y + value.y};
      *at = value;
    }
  }
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
    launch(multiply_pixels<64>, Blocks{blocks, 1, cohort.clients}, kThreads, tiles_bytes<64>(), stream,
           cohort, p);
  } else {
    launch(multiply_pixels<128>, Blocks{blocks, (p.to.channels + 127) / 128, cohort.clients}, kThreads,
           tiles_bytes<128>(), stream, cohort, p);
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

void multiply_phases(const Cohort& cohort, const SignConvolution& c, bool adds, float* x_gradient,
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
  p.whole_result = c.whole_y;
  launch_pixels(cohort, p, stream);
}

void sign_convolution_transpose(const Cohort& cohort, const SignConvolution& c, const Stream& stream) {
  launch(
      transpose_weights,
      Blocks{(c.out.channels + 31) / 32, (c.in.channels + 31) / 32, size_t{cohort.clients} * c.kernel.taps()},
      256, 32 * 33, stream, c, tap_order(c.kernel));
}

void sign_convolution_input(const Cohort& cohort, const SignConvolution& c, bool adds, float* x_gradient,
                            const Stream& stream) {
  multiply_phases(cohort, c, adds, x_gradient, stream);
}

}  // namespace bitfed::cuda
