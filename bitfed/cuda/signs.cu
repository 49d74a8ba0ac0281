// Signs about a mean, see SignActivation. A block has an image, or, about the mean of a batch, all images of
// a client. The CPU's order of sums is sixteen chains: sixteen threads add what all threads of the block load
// for them.

#include "bitfed/cuda/kernels.h"
#include "bitfed/cuda/lanes.h"

namespace bitfed::cuda {
namespace {

constexpr unsigned kThreads = 128;
constexpr unsigned kTile = 2048;                 // floats that are staged at a time
constexpr unsigned kOwn = kTile / kThreads / 4;  // float4 of a thread
constexpr float kTiny = 1e-6f;                   // as in SignActivation
constexpr float kMomentum = 0.1f;
constexpr size_t kSharedBytes = 2 * kTile * sizeof(float) + 32 * sizeof(double);

// Values of one array on their way into shared memory.
struct Staged {
  float4 values[kOwn];

  BITFED_FORMULA void load(const float* x, size_t first, size_t count) {
#pragma unroll
    for (unsigned i = 0; i < kOwn; ++i) {
      const size_t at = first + 4 * (threadIdx.x + i * kThreads);
      values[i] = at < count ? *reinterpret_cast<const float4*>(x + at) : float4{0, 0, 0, 0};
    }
  }
  BITFED_FORMULA void store(float* tile) const {
#pragma unroll
    for (unsigned i = 0; i < kOwn; ++i)
      *reinterpret_cast<float4*>(tile + 4 * (threadIdx.x + i * kThreads)) = values[i];
  }
};

// take(place in the tile) for every value of the thread's chain, in sequence, by the first sixteen threads.
// With y, both arrays are staged, y's kTile behind x's. see(index, four values of x) by all threads.
template <typename Take, typename See>
BITFED_FORMULA void for_chain(const float* x, const float* y, size_t count, float* tile, Take take, See see) {
  Staged of_x;
  Staged of_y;
  of_x.load(x, 0, count);
  if (y != nullptr) of_y.load(y, 0, count);
  for (size_t first = 0; first < count; first += kTile) {
    __syncthreads();
    of_x.store(tile);
    if (y != nullptr) of_y.store(tile + kTile);
#pragma unroll
    for (unsigned i = 0; i < kOwn; ++i) {
      const size_t at = first + 4 * (threadIdx.x + i * kThreads);
      if (at < count) see(at, of_x.values[i]);
    }
    __syncthreads();
    if (first + kTile < count) {
      of_x.load(x, first + kTile, count);
      if (y != nullptr) of_y.load(y, first + kTile, count);
    }
    if (threadIdx.x >= 16) continue;
    const unsigned values = static_cast<unsigned>(count - first < kTile ? count - first : kTile);
#pragma unroll 16
    for (unsigned i = threadIdx.x; i < values; i += 16) take(i);
  }
  __syncthreads();
}

BITFED_FORMULA void see_nothing(size_t /*at*/, float4 /*four*/) {}

// Of an image, whose signs are written on the way.
BITFED_FORMULA float deviation_of(const float* x, size_t count, float mean, float* tile, float* shared,
                                  int8_t* signs) {
  float sum = 0;
  const auto sign = [&](float value, unsigned place) {
    return (value >= mean ? 0x01u : 0xffu) << (8 * place);
  };
  for_chain(
      x, nullptr, count, tile,
      [&](unsigned i) {
        const float difference = (tile[i] - mean) * 1.0f;
        sum = __fmaf_rn(difference, difference, sum);
      },
      [&](size_t at, float4 four) {
        *reinterpret_cast<unsigned*>(signs + at) =
            sign(four.x, 0) | sign(four.y, 1) | sign(four.z, 2) | sign(four.w, 3);
      });
  return sqrtf(sum_of_chains(sum, shared) / static_cast<float>(count));
}

__global__ void __launch_bounds__(kThreads) signs_of(Cohort cohort, Signs s) {
  const uint32_t client = last_block_first_y();
  const uint32_t image = last_block_first_x();
  const uint32_t images = s.running ? cohort.images[client] : 1;
  if (image >= cohort.images[client]) return;
  BITFED_SHARED(double, doubles);
  auto* floats = reinterpret_cast<float*>(doubles);
  float* tile = floats + 64;
  const size_t floats_of_image = s.in.floats();
  const size_t base = (client * size_t{cohort.batch} + image) * floats_of_image;
  const size_t count = images * floats_of_image;
  const float* x = s.x + base;
  float* to = s.means + (client * size_t{cohort.batch} + image) * 4;
  float mean = 0;
  bool settled = false;
  if (s.sums != nullptr) {
    const size_t blocks = floats_of_image / kBlockValues;
    const double* own = s.sums + 2 * blocks * (client * size_t{cohort.batch} + image);
    double sum = 0;
    double magnitudes = 0;
    for (size_t i = 0; i < blocks; ++i) {
      sum = sum + own[2 * i];
      magnitudes = magnitudes + own[2 * i + 1];
    }
    settled = settle_mean(sum, magnitudes, count, count, &mean);
  }
  if (!settled) {
    double sum = 0;
    for_chain(
        x, nullptr, count, tile, [&](unsigned i) { sum = sum + static_cast<double>(tile[i]); }, see_nothing);
    mean = static_cast<float>(sum_of_chains(sum, doubles) / static_cast<double>(count));
  }
  float deviation = 0;
  if (!s.running) {
    deviation = deviation_of(x, count, mean, tile, floats, s.signs + base);
  } else {
    double squares = 0;
    for (uint32_t i = 0; i < images; ++i) {
      const size_t first = i * floats_of_image;
      const double own = deviation_of(x + first, floats_of_image, mean, tile, floats, s.signs + base + first);
      squares = squares + own * own;
    }
    deviation = static_cast<float>(sqrt(squares / static_cast<double>(images)));
  }
  if (threadIdx.x == 0) {
    to[0] = mean;
    to[1] = 1 / (deviation + kTiny);
    if (s.running) {
      float& running = *s.running_mean.at(client);
      running = (1 - kMomentum) * running + kMomentum * mean;
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    signs_back(Cohort cohort, Signs s, const float* gradients, const float* other, float* x_gradients) {
  const uint32_t client = last_block_first_y();
  const uint32_t image = last_block_first_x();
  const uint32_t images = s.running ? cohort.images[client] : 1;
  if (image >= cohort.images[client]) return;
  BITFED_SHARED(float, floats);
  float* tile = floats + 64;
  const size_t base = (client * size_t{cohort.batch} + image) * s.in.floats();
  const size_t count = images * s.in.floats();
  const float* x = s.x + base;
  const float* gradient = gradients + base;
  const float* means = s.means + (client * size_t{cohort.batch} + image) * 4;
  const float mean = means[0];
  const float inverse = means[1];
  const Slope slope(Surrogate{1, 1});
  float sum = 0;
  float along = 0;
  for_chain(
      x, gradient, count, tile,
      [&](unsigned i) {
        const float normal = (tile[i] - mean) * inverse;
        const float passed = tile[kTile + i] * slope.at(all(normal)).v;
        sum = sum + passed;
        along = __fmaf_rn(passed, normal, along);
      },
      see_nothing);
  const float mean_sum = sum_of_chains(sum, floats) / static_cast<float>(count);
  const float mean_along = -sum_of_chains(along, floats) / static_cast<float>(count);
  const auto back = [&](float value, float own) {
    const float normal = (value - mean) * inverse;
    const float passed = own * slope.at(all(normal)).v;
    return __fmaf_rn(mean_along, normal, passed - mean_sum) * inverse;
  };
  // The last values first: the cache may still have them.
  const size_t turns = (count + 4 * kThreads - 1) / (4 * kThreads);
#pragma unroll 4
  for (size_t turn = turns; turn-- > 0;) {
    const size_t at = 4 * (turn * kThreads + threadIdx.x);
    if (at >= count) continue;
    const float4 v = *reinterpret_cast<const float4*>(x + at);
    const float4 g = *reinterpret_cast<const float4*>(gradient + at);
    float4 result{back(v.x, g.x), back(v.y, g.y), back(v.z, g.z), back(v.w, g.w)};
    if (other != nullptr) {
      const float4 o = *reinterpret_cast<const float4*>(other + base + at);
      result = float4{o.x + result.x, o.y + result.y, o.z + result.z, o.w + result.w};
    }
    if (s.clips) {
      const auto clip = [&](float value, float own) {
        const float below = value >= s.bounds.max ? 0.0f : own;
        return s.bounds.min >= value ? 0.0f : below;
      };
      result = float4{clip(v.x, result.x), clip(v.y, result.y), clip(v.z, result.z), clip(v.w, result.w)};
    }
    *reinterpret_cast<float4*>(x_gradients + base + at) = result;
  }
}

Blocks blocks_of(const Cohort& cohort, const Signs& s) {
  return {s.running ? 1 : cohort.batch, cohort.clients};
}

}  // namespace

void signs_forward(const Cohort& cohort, const Signs& s, const Stream& stream) {
  launch(signs_of, blocks_of(cohort, s), kThreads, kSharedBytes, stream, cohort, s);
}

void signs_backward(const Cohort& cohort, const Signs& s, const float* gradient, const float* other,
                    float* x_gradient, const Stream& stream) {
  launch(signs_back, blocks_of(cohort, s), kThreads, kSharedBytes, stream, cohort, s, gradient, other,
         x_gradient);
}

}  // namespace bitfed::cuda
