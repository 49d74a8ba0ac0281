// Batch norm. A thread sums a run of rows of two channels, as the CPU does; then runs are added, see
// kNormRun.

#include "bitfed/cuda/norm_values.h"

namespace bitfed::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr uint32_t kBlockValues = 4096;  // that a block computes
constexpr uint32_t kFours =
    kBlockValues / kThreads / 4;  // of a thread in an elementwise pass: four neighbouring channels each
constexpr float kEpsilon = 1e-5f;
constexpr float kMomentum = 0.1f;

BITFED_HOST_DEVICE uint32_t runs_of(size_t rows) {
  return static_cast<uint32_t>((rows + kNormRun - 1) / kNormRun);
}

// The CPU takes one pass for large inputs and two for small ones; a pool always one.
BITFED_FORMULA bool takes_one_pass(size_t rows, uint32_t channels, bool pooled) {
  return pooled || rows * channels * sizeof(float) >= kStreamedBytes;
}

BITFED_FORMULA float x_at(const Norm& n, size_t at) {
  return n.whole_x != nullptr ? static_cast<float>(n.whole_x[at]) : n.x[at];
}

// Two neighbouring values.
struct Two {
  float v[2] = {};

  Two() = default;
  BITFED_FORMULA explicit Two(const float* from) {
    const float2 two = *reinterpret_cast<const float2*>(from);
    v[0] = two.x;
    v[1] = two.y;
  }
  BITFED_FORMULA explicit Two(const int16_t* from) {
    const unsigned word = *reinterpret_cast<const unsigned*>(from);
    v[0] = static_cast<float>(static_cast<int16_t>(word & 0xffff));
    v[1] = static_cast<float>(static_cast<int16_t>(word >> 16));
  }
  BITFED_FORMULA void store(float* to) const { *reinterpret_cast<float2*>(to) = float2{v[0], v[1]}; }
};

// Sums of a client's runs begin here: [run][2][channel].
BITFED_FORMULA float* partial_of(const Cohort& cohort, const Norm& n, uint32_t client) {
  return n.partial + size_t{client} * runs_of(cohort.batch * n.in.pixels()) * 2 * n.in.channels;
}

// Adds up one channel's runs.
BITFED_FORMULA float add_runs(const float* partial, uint32_t runs, uint32_t channels) {
  float sum = 0;
  for (uint32_t first = 0; first < runs; first += kNormRunsTogether) {
    float together = 0;
#pragma unroll
    for (uint32_t run = first; run < first + kNormRunsTogether; ++run)
      together = together + (run < runs ? partial[size_t{run} * 2 * channels] : 0.0f);
    sum = sum + together;
  }
  return sum;
}

// The same for both sums of some channels, kTogether runs at a time: a thread adds these, and one a sum adds
// what comes of them. For the block's first threads; a sum does not change by adding 0.
constexpr uint32_t kChannelsAtOnce = 8;
constexpr uint32_t kSumThreads = 512;
constexpr uint32_t kGroupsAtOnce = 64;
constexpr uint32_t kSumsAtOnce = 2 * kChannelsAtOnce;
constexpr size_t kTwoSumsBytes = kSumsAtOnce * (kGroupsAtOnce + 1) * sizeof(float);

template <uint32_t kTogether>
BITFED_FORMULA float2 add_both(const float* partial, uint32_t runs, uint32_t channels, float* tile) {
  const uint32_t own = threadIdx.x % kSumsAtOnce;
  const uint32_t channel = blockIdx.x * kChannelsAtOnce + own % kChannelsAtOnce;
  const float* from = partial + own / kChannelsAtOnce * channels + channel;
  const uint32_t groups = (runs + kTogether - 1) / kTogether;
  float sum = 0;
  for (uint32_t first = 0; first < groups; first += kGroupsAtOnce) {
    __syncthreads();
    for (uint32_t i = threadIdx.x / kSumsAtOnce; i < kGroupsAtOnce; i += kSumThreads / kSumsAtOnce) {
      float values[kTogether];
#pragma unroll
      for (uint32_t k = 0; k < kTogether; ++k) {
        const uint32_t run = (first + i) * kTogether + k;
        values[k] = run < runs && channel < channels ? from[size_t{run} * 2 * channels] : 0.0f;
      }
      float together = 0;
#pragma unroll
      for (uint32_t k = 0; k < kTogether; ++k) together = together + values[k];
      tile[i * kSumsAtOnce + own] = together;
    }
    __syncthreads();
    if (threadIdx.x >= kSumsAtOnce) continue;
#pragma unroll 16
    for (uint32_t i = 0; i < kGroupsAtOnce; ++i) sum = sum + tile[i * kSumsAtOnce + threadIdx.x];
  }
  float* sums = tile + kGroupsAtOnce * kSumsAtOnce;
  if (threadIdx.x < kSumsAtOnce) sums[threadIdx.x] = sum;
  __syncthreads();
  return {sums[own % kChannelsAtOnce], sums[own % kChannelsAtOnce + kChannelsAtOnce]};
}

// A run of rows of two neighbouring channels.
struct RunPlace {
  uint32_t client, run, channel;
  size_t rows, first, last;  // last: behind the run
  bool inside;
};

BITFED_FORMULA RunPlace run_place(const Cohort& cohort, const Norm& n, uint32_t client, uint32_t block) {
  RunPlace place;
  place.client = client;
  const uint32_t id = block * blockDim.x + threadIdx.x;
  place.channel = id % (n.in.channels / 2) * 2;
  place.run = id / (n.in.channels / 2);
  place.rows = cohort.images[place.client] * n.in.pixels();
  place.first = size_t{place.run} * kNormRun;
  place.last = place.first + kNormRun < place.rows ? place.first + kNormRun : place.rows;
  place.inside = place.first < place.rows;
  return place;
}

// add(load(r)) for the rows of a run in sequence; loads are started some rows at a time.
template <typename Load, typename Add>
BITFED_FORMULA void for_rows(const RunPlace& p, Load load, Add add) {
  constexpr unsigned kAtOnce = 8;
  size_t r = p.first;
  for (; r + kAtOnce <= p.last; r += kAtOnce) {
    decltype(load(r)) values[kAtOnce];
#pragma unroll
    for (unsigned i = 0; i < kAtOnce; ++i) values[i] = load(r + i);
#pragma unroll
    for (unsigned i = 0; i < kAtOnce; ++i) add(values[i]);
  }
  for (; r < p.last; ++r) add(load(r));
}

template <bool kWhole>
__global__ void __launch_bounds__(kThreads) norm_sums(Cohort cohort, Norm n, bool pooled) {
  const RunPlace p = run_place(cohort, n, last_block_first_y(), last_block_first_x());
  if (!p.inside) return;
  const size_t base = p.client * cohort.batch * n.in.floats() + p.channel;
  const auto* input = input_of<kWhole>(n) + base;
  float* to = partial_of(cohort, n, p.client) + size_t{p.run} * 2 * n.in.channels + p.channel;
  const auto x_of = [&](size_t r) { return Two(input + r * n.in.channels); };
  Two sum;
  if (!takes_one_pass(p.rows, n.in.channels, pooled)) {
    for_rows(p, x_of, [&](const Two& x) {
#pragma unroll
      for (unsigned j = 0; j < 2; ++j) sum.v[j] = sum.v[j] + x.v[j];
    });
    sum.store(to);
    return;
  }
  const Two pivot(input);
  Two squares;
  for_rows(p, x_of, [&](const Two& x) {
#pragma unroll
    for (unsigned j = 0; j < 2; ++j) {
      const float difference = x.v[j] - pivot.v[j];
      sum.v[j] = sum.v[j] + difference;
      squares.v[j] = __fmaf_rn(difference, difference, squares.v[j]);
    }
  });
  sum.store(to);
  squares.store(to + n.in.channels);
}

__global__ void __launch_bounds__(kThreads) norm_squares(Cohort cohort, Norm n) {
  const RunPlace p = run_place(cohort, n, blockIdx.y, blockIdx.x);
  if (!p.inside || takes_one_pass(p.rows, n.in.channels, false)) return;
  const size_t base = p.client * cohort.batch * n.in.floats() + p.channel;
  for (unsigned j = 0; j < 2; ++j) {
    float* partial = partial_of(cohort, n, p.client) + p.channel + j;
    const float mean = add_runs(partial, runs_of(p.rows), n.in.channels) / static_cast<float>(p.rows);
    float squares = 0;
#pragma unroll 8
    for (size_t r = p.first; r < p.last; ++r) {
      const float difference = x_at(n, base + j + r * n.in.channels) - mean;
      squares = __fmaf_rn(difference, difference, squares);
    }
    partial[(size_t{p.run} * 2 + 1) * n.in.channels] = squares;
  }
}

// Mean and variance of the batch, the running ones, and what a pool needs.
__global__ void __launch_bounds__(kSumThreads) norm_statistics(Cohort cohort, Norm n, bool pooled) {
  const uint32_t client = blockIdx.y;
  const uint32_t c = blockIdx.x * kChannelsAtOnce + threadIdx.x;
  const size_t rows = cohort.images[client] * n.in.pixels();
  if (rows == 0) return;
  BITFED_SHARED(float, tile);
  const float2 sums =
      add_both<kNormRunsTogether>(partial_of(cohort, n, client), runs_of(rows), n.in.channels, tile);
  if (threadIdx.x >= kChannelsAtOnce || c >= n.in.channels) return;
  const float count = static_cast<float>(rows);
  float mean = sums.x / count;
  float variance = sums.y / count;
  if (takes_one_pass(rows, n.in.channels, pooled)) {
    const float away = mean;
    mean = x_at(n, client * cohort.batch * n.in.floats() + c) + away;
    variance = larger(all(variance - away * away), all(0.0f)).v;
  }
  const float inverse = 1.0f / sqrtf(variance + kEpsilon);
  const float factor = n.scale.at(client)[c] * inverse;
  batch_row(n, client, kMean)[c] = mean;
  batch_row(n, client, kInverse)[c] = inverse;
  batch_row(n, client, kFactor)[c] = factor;
  batch_row(n, client, kOffset)[c] = n.shift.at(client)[c] - mean * factor;
  if (rows < 2) return;
  const float unbiased = static_cast<float>(rows) / static_cast<float>(rows - 1);
  float& running_mean = n.mean.at(client)[c];
  float& running_variance = n.variance.at(client)[c];
  running_mean = (1 - kMomentum) * running_mean + kMomentum * mean;
  running_variance = (1 - kMomentum) * running_variance + kMomentum * (unbiased * variance);
}

// A thread's fours are so many values apart that most networks' have the same channels.
BITFED_FORMULA bool same_channels(const Norm& n) {
  return 4 * kThreads % n.in.channels == 0;
}
BITFED_FORMULA size_t four_place(uint32_t block, uint32_t i) {
  return 4 * ((size_t{block} * kFours + i) * kThreads + threadIdx.x);
}

template <bool kWhole>
__global__ void __launch_bounds__(kThreads) norm_apply(Cohort cohort, Norm n) {
  const uint32_t client = blockIdx.y;
  const size_t count = cohort.images[client] * n.in.floats();
  const size_t base = client * cohort.batch * n.in.floats();
  const auto channel = [&](uint32_t i) {
    return static_cast<uint32_t>(four_place(blockIdx.x, i)) % n.in.channels;
  };
  ChannelValues of(n, client, channel(0));
#pragma unroll
  for (uint32_t i = 0; i < kFours; ++i) {
    const size_t at = four_place(blockIdx.x, i);
    if (at >= count) return;
    if (!same_channels(n)) of = ChannelValues(n, client, channel(i));
    Four x(input_of<kWhole>(n) + base + at);
    apply(n, of, n.added == nullptr ? x : Four(n.added + base + at), &x);
    x.store(n.out + base + at);
  }
}

template <bool kWhole>
__global__ void __launch_bounds__(kThreads)
    norm_backward_sums(Cohort cohort, Norm n, const float* gradients) {
  const RunPlace p = run_place(cohort, n, blockIdx.y, blockIdx.x);
  if (!p.inside) return;
  const size_t base = p.client * cohort.batch * n.in.floats() + p.channel;
  const auto* input = input_of<kWhole>(n) + base;
  const Two mean(batch_row(n, p.client, kMean) + p.channel);
  const Two inverse(batch_row(n, p.client, kInverse) + p.channel);
  const Two scale(n.scale.at(p.client) + p.channel);
  const Two shift(n.shift.at(p.client) + p.channel);
  struct Both {
    Two x, gradient;
  };
  Two sum;
  Two along;
  for_rows(
      p,
      [&](size_t r) {
        return Both{Two(input + r * n.in.channels), Two(gradients + base + r * n.in.channels)};
      },
      [&](const Both& of) {
#pragma unroll
        for (unsigned j = 0; j < 2; ++j) {
          const float normal = (of.x.v[j] - mean.v[j]) * inverse.v[j];
          const float passed =
              pass_gradient(n.activation, of.gradient.v[j], __fmaf_rn(normal, scale.v[j], shift.v[j]));
          sum.v[j] = sum.v[j] + passed;
          along.v[j] = __fmaf_rn(passed, normal, along.v[j]);
        }
      });
  float* to = partial_of(cohort, n, p.client) + size_t{p.run} * 2 * n.in.channels + p.channel;
  sum.store(to);
  along.store(to + n.in.channels);
}

__global__ void __launch_bounds__(kSumThreads) norm_backward_statistics(Cohort cohort, Norm n) {
  const uint32_t client = blockIdx.y;
  const uint32_t c = blockIdx.x * kChannelsAtOnce + threadIdx.x;
  const size_t rows = cohort.images[client] * n.in.pixels();
  if (rows == 0) return;
  BITFED_SHARED(float, tile);
  const float2 sums =
      add_both<kNormRunsTogether>(partial_of(cohort, n, client), runs_of(rows), n.in.channels, tile);
  if (threadIdx.x >= kChannelsAtOnce || c >= n.in.channels) return;
  const float count = static_cast<float>(rows);
  n.shift_gradient.at(client)[c] = sums.x;
  n.scale_gradient.at(client)[c] = sums.y;
  batch_row(n, client, kSum)[c] = sums.x / count;
  batch_row(n, client, kAlong)[c] = 0.0f - sums.y / count;
  batch_row(n, client, kFactor)[c] = batch_row(n, client, kInverse)[c] * n.scale.at(client)[c];
}

template <bool kWhole>
__global__ void norm_backward_apply(Cohort cohort, Norm n, const float* gradients, float* x_gradients,
                                    uint32_t* largest) {
  const uint32_t client = last_block_first_y();
  const uint32_t block = last_block_first_x();
  const size_t count = cohort.images[client] * n.in.floats();
  const size_t base = client * cohort.batch * n.in.floats();
  const auto channel = [&](uint32_t i) {
    return static_cast<uint32_t>(four_place(block, i)) % n.in.channels;
  };
  const auto row_at = [&](BatchRow row, uint32_t i) { return Four(batch_row(n, client, row) + channel(i)); };
  ChannelValues of(n, client, channel(0));
  Four sum = row_at(kSum, 0);
  Four along = row_at(kAlong, 0);
  Four factor = row_at(kFactor, 0);
  unsigned found = 0;
#pragma unroll
  for (uint32_t i = 0; i < kFours; ++i) {
    const size_t at = four_place(block, i);
    if (at >= count) break;
    if (!same_channels(n)) {
      of = ChannelValues(n, client, channel(i));
      sum = row_at(kSum, i);
      along = row_at(kAlong, i);
      factor = row_at(kFactor, i);
    }
    const Four x(input_of<kWhole>(n) + base + at);
    Four gradient(gradients + base + at);
#pragma unroll
    for (unsigned j = 0; j < 4; ++j) {
      const float normal = (x.v[j] - of.mean.v[j]) * of.inverse.v[j];
      const float passed =
          pass_gradient(n.activation, gradient.v[j], __fmaf_rn(normal, of.scale.v[j], of.shift.v[j]));
      gradient.v[j] = __fmaf_rn(along.v[j], normal, passed - sum.v[j]) * factor.v[j];
      const unsigned bits = __float_as_uint(gradient.v[j]) & 0x7fffffffu;
      found = bits > found ? bits : found;
    }
    gradient.store(x_gradients + base + at);
  }
  BITFED_SHARED(unsigned, shared);
  if (largest != nullptr) take_largest(__uint_as_float(found), shared, largest + client);
}

// A window's pixels toward the larger x * factor.
struct Window {
  float toward, a, b, c, d;

  BITFED_FORMULA Window(const float* x, size_t upper, size_t row, uint32_t channels, float factor)
      : toward(where_at_least(all(factor), all(0.0f), all(1.0f), all(-1.0f)).v),
        a(x[upper] * toward),
        b(x[upper + channels] * toward),
        c(x[upper + row] * toward),
        d(x[upper + row + channels] * toward) {}
  BITFED_FORMULA float largest() const { return larger(larger(all(a), all(b)), larger(all(c), all(d))).v; }
};

struct WindowPlace {
  uint32_t client, channel;
  size_t at;     // in a pooled image batch of the client
  size_t upper;  // of the window's first pixel
  bool inside;
};

BITFED_FORMULA WindowPlace window_place(const Cohort& cohort, const PooledNorm& p) {
  WindowPlace place;
  const Extent out = p.out();
  place.client = blockIdx.y;
  place.at = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  place.inside = place.at < cohort.images[place.client] * out.floats();
  place.channel = static_cast<uint32_t>(place.at % out.channels);
  const size_t pixel = place.at / out.channels;
  const size_t x = pixel % out.width;
  const size_t y = pixel / out.width % out.height;
  const size_t image = pixel / out.pixels();
  place.upper = ((image * p.norm.in.height + 2 * y) * p.norm.in.width + 2 * x) * out.channels + place.channel;
  return place;
}

__global__ void pool_apply(Cohort cohort, PooledNorm p) {
  const WindowPlace w = window_place(cohort, p);
  if (!w.inside) return;
  const Norm& n = p.norm;
  const float factor = batch_row(n, w.client, kFactor)[w.channel];
  const float* x = n.x + w.client * cohort.batch * n.in.floats();
  const Window window(x, w.upper, n.in.width * n.in.channels, n.in.channels, factor);
  const float chosen = window.largest() * window.toward;
  const size_t at = w.client * cohort.batch * p.out().floats() + w.at;
  n.out[at] = activate(n.activation, chosen * factor + batch_row(n, w.client, kOffset)[w.channel]);
  p.chosen[at] = chosen;
}

// Sums over an image's windows.
__global__ void pool_image_sums(Cohort cohort, PooledNorm p, const float* gradients) {
  const Norm& n = p.norm;
  const uint32_t client = blockIdx.y;
  const size_t id = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const uint32_t c = static_cast<uint32_t>(id % n.in.channels);
  const size_t image = id / n.in.channels;
  if (image >= cohort.images[client]) return;
  const float factor = batch_row(n, client, kFactor)[c];
  const float offset = batch_row(n, client, kOffset)[c];
  const float mean = batch_row(n, client, kMean)[c];
  const float inverse = batch_row(n, client, kInverse)[c];
  const size_t windows = p.out().pixels();
  const size_t base = (client * cohort.batch + image) * p.out().floats() + c;
  float sum = 0;
  float along = 0;
  for (size_t i = 0; i < windows; ++i) {
    const float chosen = p.chosen[base + i * n.in.channels];
    const float gradient =
        pass_gradient(n.activation, gradients[base + i * n.in.channels], chosen * factor + offset);
    sum = sum + gradient;
    along = __fmaf_rn(gradient, (chosen - mean) * inverse, along);
  }
  float* to = n.partial + (client * size_t{cohort.batch} + image) * 2 * n.in.channels + c;
  to[0] = sum;
  to[n.in.channels] = along;
}

__global__ void __launch_bounds__(kSumThreads) pool_statistics(Cohort cohort, PooledNorm p) {
  const Norm& n = p.norm;
  const uint32_t client = blockIdx.y;
  const uint32_t c = blockIdx.x * kChannelsAtOnce + threadIdx.x;
  const uint32_t images = cohort.images[client];
  if (images == 0) return;
  BITFED_SHARED(float, tile);
  const float* partial = n.partial + client * size_t{cohort.batch} * 2 * n.in.channels;
  const float2 sums = add_both<1>(partial, images, n.in.channels, tile);
  if (threadIdx.x >= kChannelsAtOnce || c >= n.in.channels) return;
  const float sum = sums.x;
  const float along = sums.y;
  n.shift_gradient.at(client)[c] = sum;
  n.scale_gradient.at(client)[c] = along;
  const float rows = static_cast<float>(images * n.in.pixels());
  const float factor = batch_row(n, client, kFactor)[c];
  const float slope = -factor * batch_row(n, client, kInverse)[c] * (along / rows);
  batch_row(n, client, kSum)[c] = slope;
  batch_row(n, client, kAlong)[c] = -slope * batch_row(n, client, kMean)[c] - factor * (sum / rows);
}

// A thread per pixel of x: it looks at its window, if it is in one.
__global__ void pool_backward_apply(Cohort cohort, PooledNorm p, const float* gradients, float* x_gradients) {
  const Norm& n = p.norm;
  const Extent out = p.out();
  const uint32_t client = blockIdx.y;
  const size_t at = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= cohort.images[client] * n.in.floats()) return;
  const uint32_t c = static_cast<uint32_t>(at % n.in.channels);
  const size_t pixel = at / n.in.channels;
  const size_t column = pixel % n.in.width;
  const size_t row = pixel / n.in.width % n.in.height;
  const size_t image = pixel / n.in.pixels();
  const float* x = n.x + client * cohort.batch * n.in.floats();
  const float whole = __fmaf_rn(x[at], batch_row(n, client, kSum)[c], batch_row(n, client, kAlong)[c]);
  float* to = x_gradients + client * cohort.batch * n.in.floats() + at;
  if (row / 2 >= out.height || column / 2 >= out.width) {
    *to = whole;
    return;
  }
  const float factor = batch_row(n, client, kFactor)[c];
  const size_t line = n.in.width * n.in.channels;
  const size_t upper =
      ((image * n.in.height + row / 2 * 2) * n.in.width + column / 2 * 2) * n.in.channels + c;
  const Window window(x, upper, line, n.in.channels, factor);
  const float largest = window.largest();
  const float before = largest * window.toward * factor + batch_row(n, client, kOffset)[c];
  const size_t of_window =
      (client * cohort.batch + image) * out.floats() + (row / 2 * out.width + column / 2) * out.channels + c;
  const float rest = pass_gradient(n.activation, gradients[of_window], before) * factor;
  // The first of equal ones gets it.
  const unsigned own = static_cast<unsigned>(row % 2 * 2 + column % 2);
  const float pixels[4] = {window.a, window.b, window.c, window.d};
  bool taken = false;
  for (unsigned i = 0; i < own; ++i) taken = taken || pixels[i] >= largest;
  *to = whole + (!taken && pixels[own] >= largest ? rest : 0.0f);
}

Blocks run_blocks(const Cohort& cohort, const Extent& in) {
  const size_t threads = size_t{runs_of(cohort.batch * in.pixels())} * in.channels / 2;
  return {(threads + kThreads - 1) / kThreads, cohort.clients};
}

Blocks value_blocks(const Cohort& cohort, size_t values, size_t per_block) {
  return {(cohort.batch * values + per_block - 1) / per_block, cohort.clients};
}

Blocks channel_blocks(const Cohort& cohort, const Extent& in) {
  return {(in.channels + kChannelsAtOnce - 1) / kChannelsAtOnce, cohort.clients};
}

bool some_take_two_passes(const Extent& in) {
  return in.floats() * sizeof(float) < kStreamedBytes;  // a batch of one image
}

}  // namespace

size_t norm_partial_floats(const Cohort& cohort, const Extent& in) {
  const size_t runs = runs_of(cohort.batch * in.pixels());
  return cohort.clients * (runs > cohort.batch ? runs : cohort.batch) * 2 * in.channels;
}

size_t norm_batch_floats(const Cohort& cohort, const Extent& in) {
  return size_t{cohort.clients} * kBatchRows * in.channels;
}

void norm_forward(const Cohort& cohort, const Norm& n, const Signs* signs, const Stream& stream) {
  launch(of_input(n, norm_sums<true>, norm_sums<false>), run_blocks(cohort, n.in), kThreads, 0, stream,
         cohort, n, false);
  if (some_take_two_passes(n.in))
    launch(norm_squares, run_blocks(cohort, n.in), kThreads, 0, stream, cohort, n);
  launch(norm_statistics, channel_blocks(cohort, n.in), kSumThreads, kTwoSumsBytes, stream, cohort, n, false);
  if (signs != nullptr) return norm_signs(cohort, n, *signs, stream);
  launch(of_input(n, norm_apply<true>, norm_apply<false>), value_blocks(cohort, n.in.floats(), kBlockValues),
         kThreads, 0, stream, cohort, n);
}

void norm_backward(const Cohort& cohort, const Norm& n, const float* gradient, float* x_gradient,
                   uint32_t* largest, const Stream& stream) {
  launch(of_input(n, norm_backward_sums<true>, norm_backward_sums<false>), run_blocks(cohort, n.in), kThreads,
         0, stream, cohort, n, gradient);
  launch(norm_backward_statistics, channel_blocks(cohort, n.in), kSumThreads, kTwoSumsBytes, stream, cohort,
         n);
  launch(of_input(n, norm_backward_apply<true>, norm_backward_apply<false>),
         value_blocks(cohort, n.in.floats(), kBlockValues), kThreads, kThreads * sizeof(unsigned), stream,
         cohort, n, gradient, x_gradient, largest);
}

void pooled_norm_forward(const Cohort& cohort, const PooledNorm& p, const Stream& stream) {
  launch(norm_sums<false>, run_blocks(cohort, p.norm.in), kThreads, 0, stream, cohort, p.norm, true);
  launch(norm_statistics, channel_blocks(cohort, p.norm.in), kSumThreads, kTwoSumsBytes, stream, cohort,
         p.norm, true);
  launch(pool_apply, value_blocks(cohort, p.out().floats(), kThreads), kThreads, 0, stream, cohort, p);
}

void pooled_norm_backward(const Cohort& cohort, const PooledNorm& p, const float* gradient, float* x_gradient,
                          const Stream& stream) {
  launch(pool_image_sums, value_blocks(cohort, p.norm.in.channels, kThreads), kThreads, 0, stream, cohort, p,
         gradient);
  launch(pool_statistics, channel_blocks(cohort, p.norm.in), kSumThreads, kTwoSumsBytes, stream, cohort, p);
  if (x_gradient == nullptr) return;
  launch(pool_backward_apply, value_blocks(cohort, p.norm.in.floats(), kThreads), kThreads, 0, stream, cohort,
         p, gradient, x_gradient);
}

}  // namespace bitfed::cuda
