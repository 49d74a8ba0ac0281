// Convolutions of real numbers. Every sum is one chain of fused multiply-adds in the CPU's order: a thread
// takes sixteen of them along the whole depth, from tiles in shared memory.

#include "bitfed/cuda/input_phases.h"
#include "bitfed/cuda/kernels.h"
#include "bitfed/cuda/lanes.h"
#include "bitfed/cuda/tf32_products.h"

namespace bitfed::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kTile = 64;   // rows and columns of a block
constexpr unsigned kDepth = 16;  // of a tile

// c[row][column] = sum over the depth of a * b, per client. A Product says what rows, columns and depth are,
// and where elements lie.

struct Forward {
  RealConvolution c;

  BITFED_FORMULA uint32_t rows(const Cohort& cohort, uint32_t client) const {
    return cohort.images[client] * static_cast<uint32_t>(c.out.pixels());
  }
  BITFED_FORMULA uint32_t columns() const { return c.out.channels; }
  BITFED_FORMULA uint32_t depth(const Cohort& /*cohort*/, uint32_t /*client*/) const {
    return c.kernel.taps() * c.in.channels;
  }
  BITFED_FORMULA float a(const Cohort& cohort, uint32_t client, uint32_t row, uint32_t k) const {
    const uint32_t tap = k / c.in.channels;
    const uint32_t pixel = row % static_cast<uint32_t>(c.out.pixels());
    const int y = static_cast<int>(pixel / c.out.width * c.kernel.stride + tap / c.kernel.side) -
                  static_cast<int>(c.kernel.padding);
    const int x = static_cast<int>(pixel % c.out.width * c.kernel.stride + tap % c.kernel.side) -
                  static_cast<int>(c.kernel.padding);
    if (y < 0 || x < 0 || y >= static_cast<int>(c.in.height) || x >= static_cast<int>(c.in.width)) return 0;
    const size_t image = client * size_t{cohort.batch} + row / c.out.pixels();
    return c.x[(image * c.in.pixels() + y * c.in.width + x) * c.in.channels + k % c.in.channels];
  }
  BITFED_FORMULA float b(const Cohort& /*cohort*/, uint32_t client, uint32_t k, uint32_t column) const {
    return c.weights.at(client)[size_t{k} * c.out.channels + column];
  }
  BITFED_FORMULA float start(const Cohort& /*cohort*/, uint32_t /*client*/, uint32_t /*row*/,
                             uint32_t /*column*/) const {
    return 0;
  }
  BITFED_FORMULA void put(const Cohort& cohort, uint32_t client, uint32_t row, uint32_t column,
                          float value) const {
    c.y[(client * size_t{cohort.batch} * c.out.pixels() + row) * c.out.channels + column] = value;
  }
};

struct Weights {
  RealConvolution c;
  const float* gradient;

  BITFED_FORMULA uint32_t rows(const Cohort& /*cohort*/, uint32_t /*client*/) const {
    return c.kernel.taps() * c.in.channels;
  }
  BITFED_FORMULA uint32_t columns() const { return c.out.channels; }
  BITFED_FORMULA uint32_t depth(const Cohort& cohort, uint32_t client) const {
    return cohort.images[client] * static_cast<uint32_t>(c.out.pixels());
  }
  BITFED_FORMULA float a(const Cohort& cohort, uint32_t client, uint32_t row, uint32_t k) const {
    return Forward{c}.a(cohort, client, k, row);
  }
  BITFED_FORMULA float b(const Cohort& cohort, uint32_t client, uint32_t k, uint32_t column) const {
    return gradient[(client * size_t{cohort.batch} * c.out.pixels() + k) * c.out.channels + column];
  }
  BITFED_FORMULA float start(const Cohort& /*cohort*/, uint32_t /*client*/, uint32_t /*row*/,
                             uint32_t /*column*/) const {
    return 0;
  }
  BITFED_FORMULA void put(const Cohort& /*cohort*/, uint32_t client, uint32_t row, uint32_t column,
                          float value) const {
    c.gradient.at(client)[size_t{row} * c.out.channels + column] = value;
  }
};

// The gradient of a phase's pixels.
struct Input {
  RealConvolution c;
  const float* gradient;
  float* x_gradient;
  bool adds;
  InputPhase phase;

  BITFED_FORMULA uint32_t rows(const Cohort& cohort, uint32_t client) const {
    return cohort.images[client] * phase.pixels();
  }
  BITFED_FORMULA uint32_t columns() const { return c.in.channels; }
  BITFED_FORMULA uint32_t depth(const Cohort& /*cohort*/, uint32_t /*client*/) const {
    return phase.taps() * c.out.channels;
  }
  struct Tap {
    int y, x;
  };
  BITFED_FORMULA Tap tap(uint32_t k) const {
    const uint32_t index = k / c.out.channels;
    return {phase.tap_y - static_cast<int>(index / phase.taps_x * c.kernel.stride),
            phase.tap_x - static_cast<int>(index % phase.taps_x * c.kernel.stride)};
  }
  BITFED_FORMULA size_t pixel(const Cohort& cohort, uint32_t client, uint32_t row, int* at_y,
                              int* at_x) const {
    *at_y = static_cast<int>(row / phase.width % phase.height * c.kernel.stride + phase.y);
    *at_x = static_cast<int>(row % phase.width * c.kernel.stride + phase.x);
    return client * size_t{cohort.batch} + row / phase.pixels();
  }
  BITFED_FORMULA float a(const Cohort& cohort, uint32_t client, uint32_t row, uint32_t k) const {
    int at_y;
    int at_x;
    const size_t image = pixel(cohort, client, row, &at_y, &at_x);
    const Tap t = tap(k);
    const int from_y = at_y + static_cast<int>(c.kernel.padding) - t.y;
    const int from_x = at_x + static_cast<int>(c.kernel.padding) - t.x;
    const int stride = static_cast<int>(c.kernel.stride);
    if (from_y < 0 || from_x < 0 || from_y >= static_cast<int>(c.out.height) * stride ||
        from_x >= static_cast<int>(c.out.width) * stride)
      return 0;
    return gradient[(image * c.out.pixels() + from_y / stride * c.out.width + from_x / stride) *
                        c.out.channels +
                    k % c.out.channels];
  }
  BITFED_FORMULA float b(const Cohort& /*cohort*/, uint32_t client, uint32_t k, uint32_t column) const {
    const Tap t = tap(k);
    const size_t row = size_t(t.y * static_cast<int>(c.kernel.side) + t.x) * c.in.channels + column;
    return c.weights.at(client)[row * c.out.channels + k % c.out.channels];
  }
  BITFED_FORMULA float* place(const Cohort& cohort, uint32_t client, uint32_t row, uint32_t column) const {
    int at_y;
    int at_x;
    const size_t image = pixel(cohort, client, row, &at_y, &at_x);
    return x_gradient + (image * c.in.pixels() + at_y * c.in.width + at_x) * c.in.channels + column;
  }
  // At stride 1 the chain begins with what is there.
  BITFED_FORMULA float start(const Cohort& cohort, uint32_t client, uint32_t row, uint32_t column) const {
    return adds && c.kernel.stride == 1 ? *place(cohort, client, row, column) : 0;
  }
  BITFED_FORMULA void put(const Cohort& cohort, uint32_t client, uint32_t row, uint32_t column,
                          float value) const {
    float* to = place(cohort, client, row, column);
    *to = adds && c.kernel.stride > 1 ? value + *to : value;
  }
};

template <typename Product>
__global__ void __launch_bounds__(256) multiply_tiles(Cohort cohort, Product p) {
  BITFED_SHARED(float, shared);
  float* a = shared;                         // [depth][row]
  float* b = shared + kDepth * (kTile + 4);  // [depth][column]
  const uint32_t client = blockIdx.z;
  const uint32_t rows = p.rows(cohort, client);
  const uint32_t columns = p.columns();
  const uint32_t depth = p.depth(cohort, client);
  const uint32_t first_row = blockIdx.x * kTile;
  const uint32_t first_column = blockIdx.y * kTile;
  if (first_row >= rows || cohort.images[client] == 0) return;
  const uint32_t row = first_row + threadIdx.x / 16 * 4;
  const uint32_t column = first_column + threadIdx.x % 16 * 4;
  float sums[4][4];
#pragma unroll
  for (unsigned r = 0; r < 4; ++r) {
#pragma unroll
    for (unsigned i = 0; i < 4; ++i)
      sums[r][i] =
          row + r < rows && column + i < columns ? p.start(cohort, client, row + r, column + i) : 0.0f;
  }
  for (uint32_t first = 0; first < depth; first += kDepth) {
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < kTile * kDepth / kThreads; ++i) {
      const unsigned at = threadIdx.x + i * kThreads;
      const uint32_t k = first + at % kDepth;
      const uint32_t r = first_row + at / kDepth;
      a[at % kDepth * (kTile + 4) + at / kDepth] = k < depth && r < rows ? p.a(cohort, client, r, k) : 0.0f;
      const uint32_t of_b = first + at / kTile;
      const uint32_t c = first_column + at % kTile;
      b[at / kTile * (kTile + 4) + at % kTile] =
          of_b < depth && c < columns ? p.b(cohort, client, of_b, c) : 0.0f;
    }
    __syncthreads();
    const unsigned inside = depth - first < kDepth ? depth - first : kDepth;
    for (unsigned k = 0; k < inside; ++k) {
      const float4 left = *reinterpret_cast<const float4*>(a + k * (kTile + 4) + threadIdx.x / 16 * 4);
      const float4 right = *reinterpret_cast<const float4*>(b + k * (kTile + 4) + threadIdx.x % 16 * 4);
      const float values[4] = {left.x, left.y, left.z, left.w};
      const float line[4] = {right.x, right.y, right.z, right.w};
#pragma unroll
      for (unsigned r = 0; r < 4; ++r) {
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) sums[r][i] = __fmaf_rn(values[r], line[i], sums[r][i]);
      }
    }
  }
#pragma unroll
  for (unsigned r = 0; r < 4; ++r) {
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      if (row + r < rows && column + i < columns) p.put(cohort, client, row + r, column + i, sums[r][i]);
    }
  }
}

// Where weights are few (kernels of 1 x 1) and their sums long, a thread has one sum. A block has all rows,
// up to 32, of eight columns, so that every gradient is read once; it stages 128 pixels at a time.
constexpr unsigned kChainColumns = 8;
constexpr unsigned kChainRows = 32;
constexpr unsigned kChainThreads = kChainColumns * kChainRows;
constexpr unsigned kChainPixels = 128;
constexpr unsigned kChainStep = kChainRows + 1;  // of a pixel's inputs
constexpr size_t kChainShared = 2 * kChainPixels * (kChainColumns + kChainStep) * sizeof(float);

__global__ void __launch_bounds__(kChainThreads) multiply_chains(Cohort cohort, Weights p) {
  BITFED_SHARED(float, shared);
  const uint32_t client = blockIdx.z;
  const RealConvolution& c = p.c;
  const uint32_t first_row = blockIdx.x * kChainRows;
  const uint32_t rows = c.kernel.taps() * c.in.channels;
  const uint32_t first_column = blockIdx.y * kChainColumns;
  const uint32_t pixels = static_cast<uint32_t>(c.out.pixels());
  const uint32_t all = cohort.images[client] * pixels;
  if (all == 0) return;
  const float* gradients = p.gradient + client * size_t{cohort.batch} * c.out.floats() + first_column;
  const float* inputs = c.x + client * size_t{cohort.batch} * c.in.floats();
  const int stride = static_cast<int>(c.kernel.stride);

  // A thread loads the inputs of one row of weights at some pixels, and one float4 of gradients.
  const unsigned own_row = threadIdx.x % kChainRows;
  const unsigned own_pixel = threadIdx.x / kChainRows;
  const bool has_row = first_row + own_row < rows;
  const uint32_t tap = (first_row + own_row) / c.in.channels;
  const int dy = static_cast<int>(tap / c.kernel.side) - static_cast<int>(c.kernel.padding);
  const int dx = static_cast<int>(tap % c.kernel.side) - static_cast<int>(c.kernel.padding);
  const uint32_t channel = (first_row + own_row) % c.in.channels;
  constexpr unsigned kOwn = kChainPixels * kChainRows / kChainThreads;
  float values[kOwn];
  float4 line{0, 0, 0, 0};
  const auto load = [&](uint32_t first) {
#pragma unroll
    for (unsigned i = 0; i < kOwn; ++i) {
      const uint32_t pixel = first + own_pixel + i * (kChainThreads / kChainRows);
      const uint32_t place = pixel % pixels;
      const int y = static_cast<int>(place / c.out.width) * stride + dy;
      const int x = static_cast<int>(place % c.out.width) * stride + dx;
      const bool inside = has_row && pixel < all && y >= 0 && x >= 0 && y < static_cast<int>(c.in.height) &&
                          x < static_cast<int>(c.in.width);
      values[i] =
          inside
              ? inputs[(pixel / pixels * c.in.pixels() + size_t(y) * c.in.width + size_t(x)) * c.in.channels +
                       channel]
              : 0.0f;
    }
    const uint32_t pixel = first + threadIdx.x / 2;
    if (pixel < all)
      line =
          *reinterpret_cast<const float4*>(gradients + size_t{pixel} * c.out.channels + threadIdx.x % 2 * 4);
  };
  float sum = 0;
  load(0);
  for (uint32_t first = 0, turn = 0; first < all; first += kChainPixels, turn ^= 1) {
    float* of_inputs = shared + turn * kChainPixels * (kChainColumns + kChainStep);
    float* of_gradients = of_inputs + kChainPixels * kChainStep;
#pragma unroll
    for (unsigned i = 0; i < kOwn; ++i)
      of_inputs[(own_pixel + i * (kChainThreads / kChainRows)) * kChainStep + own_row] = values[i];
    *reinterpret_cast<float4*>(of_gradients + 4 * threadIdx.x) = line;
    __syncthreads();
    if (first + kChainPixels < all) load(first + kChainPixels);
    const unsigned inside = all - first < kChainPixels ? all - first : kChainPixels;
    const float* x = of_inputs + threadIdx.x / kChainColumns;
    const float* g = of_gradients + threadIdx.x % kChainColumns;
#pragma unroll 16
    for (unsigned k = 0; k < inside; ++k) sum = __fmaf_rn(x[k * kChainStep], g[k * kChainColumns], sum);
  }
  const uint32_t row = first_row + threadIdx.x / kChainColumns;
  if (row < rows) p.put(cohort, client, row, first_column + threadIdx.x % kChainColumns, sum);
}

__global__ void clear_pixels(Cohort cohort, Input p) {
  const uint32_t client = blockIdx.z;
  const size_t at = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const uint32_t channels = p.c.in.channels;
  if (at >= size_t{p.rows(cohort, client)} * channels) return;
  *p.place(cohort, client, static_cast<uint32_t>(at / channels), static_cast<uint32_t>(at % channels)) = 0;
}

constexpr size_t kSharedBytes = 2 * kDepth * (kTile + 4) * sizeof(float);

size_t tiles(size_t count) {
  return (count + kTile - 1) / kTile;
}

}  // namespace

std::vector<InputPhase> input_phases(const RealConvolution& c) {
  const uint32_t stride = c.kernel.stride;
  const auto pixels = [&](uint32_t side, uint32_t phase) {
    return phase < side ? (side - phase - 1) / stride + 1 : 0;
  };
  // Taps t of (phase + padding - t) % stride == 0: the last one, and how many.
  const auto taps = [&](uint32_t phase, int* last) {
    uint32_t count = 0;
    for (uint32_t tap = 0; tap < c.kernel.side; ++tap) {
      if ((phase + c.kernel.padding) % stride != tap % stride) continue;
      *last = static_cast<int>(tap);
      ++count;
    }
    return count;
  };
  std::vector<InputPhase> phases;
  for (uint32_t y = 0; y < stride; ++y) {
    for (uint32_t x = 0; x < stride; ++x) {
      InputPhase phase{y, x, pixels(c.in.height, y), pixels(c.in.width, x), 0, 0, 0, 0};
      phase.taps_y = taps(y, &phase.tap_y);
      phase.taps_x = taps(x, &phase.tap_x);
      if (phase.pixels() > 0) phases.push_back(phase);
    }
  }
  return phases;
}

void real_convolution_forward(const Cohort& cohort, const RealConvolution& c, const Stream& stream) {
  if (c.tf32) return tf32_forward(cohort, c, stream);
  launch(multiply_tiles<Forward>,
         Blocks{tiles(cohort.batch * c.out.pixels()), tiles(c.out.channels), cohort.clients}, kThreads,
         kSharedBytes, stream, cohort, Forward{c});
}

void real_convolution_weights(const Cohort& cohort, const RealConvolution& c, const float* gradient,
                              const Stream& stream) {
  if (c.tf32) return tf32_weights(cohort, c, gradient, stream);
  const uint32_t rows = c.kernel.taps() * c.in.channels;
  const Weights product{c, gradient};
  if (rows <= 2 * kTile) {
    launch(multiply_chains,
           Blocks{(rows + kChainRows - 1) / kChainRows, c.out.channels / kChainColumns, cohort.clients},
           kChainThreads, kChainShared, stream, cohort, product);
    return;
  }
  launch(multiply_tiles<Weights>, Blocks{tiles(rows), tiles(c.out.channels), cohort.clients}, kThreads,
         kSharedBytes, stream, cohort, product);
}

void real_convolution_input(const Cohort& cohort, const RealConvolution& c, const float* gradient, bool adds,
                            float* x_gradient, const Stream& stream) {
  if (c.tf32) return tf32_input(cohort, c, gradient, adds, x_gradient, stream);
  for (const InputPhase& phase : input_phases(c)) {
    const Input p{c, gradient, x_gradient, adds, phase};
    const size_t rows = size_t{cohort.batch} * phase.pixels();
    if (phase.taps() > 0) {
      launch(multiply_tiles<Input>, Blocks{tiles(rows), tiles(c.in.channels), cohort.clients}, kThreads,
             kSharedBytes, stream, cohort, p);
    } else if (!adds) {
      launch(clear_pixels, Blocks{(rows * c.in.channels + kThreads - 1) / kThreads, 1, cohort.clients},
             kThreads, 0, stream, cohort, p);
    }
  }
}

}  // namespace bitfed::cuda
