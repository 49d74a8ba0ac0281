// The gradient of a first convolution's weights: few weights, many pixels. A block has one image and up to 32
// rows of 64 columns of weights, a thread eight of them: four rows, two columns. Pixels are staged 32 at a
// time, the next ones in registers while the present ones are multiplied.

#include "bitfed/cuda/first_convolution.h"
#include "bitfed/cuda/lanes.h"

namespace bitfed::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kRows = 32;
constexpr unsigned kColumns = 64;
constexpr unsigned kPixels = 32;
constexpr unsigned kStages = 2;
constexpr size_t kShared = kStages * kPixels * (kRows + kColumns) * sizeof(float);

__global__ void __launch_bounds__(kThreads)
    multiply_images(Cohort cohort, RealConvolution c, const float* gradient, float* sums) {
  BITFED_SHARED(float, shared);
  const uint32_t client = blockIdx.x / cohort.batch;
  if (blockIdx.x % cohort.batch >= cohort.images[client]) return;
  const uint32_t first_row = blockIdx.y * kRows;
  const uint32_t first_column = blockIdx.z * kColumns;
  const uint32_t rows = c.kernel.taps() * c.in.channels;
  const uint32_t columns = c.out.channels;
  const uint32_t pixels = static_cast<uint32_t>(c.out.pixels());
  const float* inputs = c.x + blockIdx.x * c.in.floats();
  const float* gradients = gradient + blockIdx.x * c.out.floats();

  // A thread loads the inputs of one row of weights at four pixels, and two times four gradients.
  constexpr unsigned kOwnPixels = kPixels * kRows / kThreads;
  constexpr unsigned kOwnFours = kPixels * kColumns / 4 / kThreads;
  const uint32_t own_row = first_row + threadIdx.x % kRows;
  const uint32_t tap = own_row / c.in.channels;
  const int dy = static_cast<int>(tap / c.kernel.side) - static_cast<int>(c.kernel.padding);
  const int dx = static_cast<int>(tap % c.kernel.side) - static_cast<int>(c.kernel.padding);
  const uint32_t channel = own_row % c.in.channels;
  const int stride = static_cast<int>(c.kernel.stride);
  const uint32_t own_column = first_column + threadIdx.x % (kColumns / 4) * 4;
  float values[kOwnPixels];
  float4 lines[kOwnFours];
  const auto load = [&](uint32_t first) {
#pragma unroll
    for (unsigned i = 0; i < kOwnPixels; ++i) {
      const uint32_t pixel = first + threadIdx.x / kRows + i * (kThreads / kRows);
      const int y = static_cast<int>(pixel / c.out.width) * stride + dy;
      const int x = static_cast<int>(pixel % c.out.width) * stride + dx;
      const bool inside = own_row < rows && pixel < pixels && y >= 0 && x >= 0 &&
                          y < static_cast<int>(c.in.height) && x < static_cast<int>(c.in.width);
      values[i] =
          inside ? inputs[(static_cast<size_t>(y) * c.in.width + static_cast<size_t>(x)) * c.in.channels +
                          channel]
                 : 0.0f;
    }
#pragma unroll
    for (unsigned i = 0; i < kOwnFours; ++i) {
      const uint32_t pixel = first + threadIdx.x / (kColumns / 4) + i * (kThreads / (kColumns / 4));
      lines[i] = pixel < pixels && own_column < columns
                     ? *reinterpret_cast<const float4*>(gradients + size_t{pixel} * columns + own_column)
                     : float4{0, 0, 0, 0};
    }
  };

  const unsigned row = threadIdx.x / 32 * 4;
  const unsigned column = threadIdx.x % 32 * 2;
  float totals[4][2] = {};
  load(0);
  for (uint32_t first = 0, turn = 0; first < pixels; first += kPixels, turn ^= 1) {
    float* of_inputs = shared + turn * kPixels * (kRows + kColumns);  // [pixel][row]
    float* of_gradients = of_inputs + kPixels * kRows;                // [pixel][column]
#pragma unroll
    for (unsigned i = 0; i < kOwnPixels; ++i) of_inputs[threadIdx.x + i * kThreads] = values[i];
#pragma unroll
    for (unsigned i = 0; i < kOwnFours; ++i)
      *reinterpret_cast<float4*>(of_gradients + 4 * (threadIdx.x + i * kThreads)) = lines[i];
    __syncthreads();
    if (first + kPixels < pixels) load(first + kPixels);
    const unsigned inside = pixels - first < kPixels ? pixels - first : kPixels;
#pragma unroll 8
    for (unsigned k = 0; k < inside; ++k) {
      const float4 x = *reinterpret_cast<const float4*>(of_inputs + k * kRows + row);
      const float* g = of_gradients + k * kColumns + column;
      const float of_rows[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
      for (unsigned r = 0; r < 4; ++r) {
        totals[r][0] = __fmaf_rn(of_rows[r], g[0], totals[r][0]);
        totals[r][1] = __fmaf_rn(of_rows[r], g[1], totals[r][1]);
      }
    }
  }
#pragma unroll
  for (unsigned r = 0; r < 4; ++r) {
#pragma unroll
    for (unsigned i = 0; i < 2; ++i) {
      const uint32_t at_row = first_row + row + r;
      const uint32_t at_column = first_column + column + i;
      if (at_row < rows && at_column < columns)
        sums[(size_t{blockIdx.x} * rows + at_row) * columns + at_column] = totals[r][i];
    }
  }
}

// A thread a weight.
__global__ void add_images(Cohort cohort, RealConvolution c, const float* sums) {
  const uint32_t client = blockIdx.y;
  const size_t weights = size_t{c.kernel.taps()} * c.in.channels * c.out.channels;
  const size_t at = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= weights || cohort.images[client] == 0) return;
  const float* own = sums + size_t{client} * cohort.batch * weights + at;
  float total = own[0];
#pragma unroll 8
  for (uint32_t image = 1; image < cohort.images[client]; ++image) total = total + own[image * weights];
  c.gradient.at(client)[at] = total;
}

}  // namespace

void first_convolution_weights(const Cohort& cohort, const RealConvolution& c, const float* gradient,
                               float* sums, const Stream& stream) {
  const size_t rows = size_t{c.kernel.taps()} * c.in.channels;
  launch(multiply_images,
         Blocks{size_t{cohort.clients} * cohort.batch, (rows + kRows - 1) / kRows,
                (c.out.channels + kColumns - 1) / kColumns},
         kThreads, kShared, stream, cohort, c, gradient, sums);
  launch(add_images, Blocks{(rows * c.out.channels + kThreads - 1) / kThreads, cohort.clients}, kThreads, 0,
         stream, cohort, c, static_cast<const float*>(sums));
}

}  // namespace bitfed::cuda
