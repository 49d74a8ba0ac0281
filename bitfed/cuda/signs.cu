// Signs about a mean, see SignActivation. A block has an image, or, about the mean of a batch, all images of
// a client. Sums have the order of kSummedTogether; the mean's is sixteen chains, which sixteen threads add
// where a sum in another order leaves two floats.

#include "bitfed/cuda/norm_values.h"

namespace bitfed::cuda {
namespace {

// A block a processor: what its threads have just written or read, the second-level cache still has.
#ifdef BITFED_CUDA_EMULATED
constexpr unsigned kThreads = 256;
#else
constexpr unsigned kThreads = 1024;
#endif
constexpr unsigned kWarps = kThreads / kWarp;
constexpr unsigned kPartsAtOnce = 4 * kWarps;  // of kSummedTogether values
constexpr unsigned kTile = 2048;               // floats that are staged at a time
constexpr float kTiny = 1e-6f;                 // as in SignActivation
constexpr float kMomentum = 0.1f;
constexpr size_t kSharedBytes = kTile * sizeof(float) + 2 * kThreads * sizeof(double);

// Sums over an image by all threads of the block, see add_up(). `shared` has room for kPartsAtOnce * kSums.
template <unsigned kSums, typename Load, typename Add>
BITFED_FORMULA Sums<kSums> add_up_image(size_t count, float* shared, Load load, Add add) {
  Sums<kSums> sums;
  const size_t parts = (count + kSummedTogether - 1) / kSummedTogether;
  for (size_t begin = 0; begin < parts; begin += kPartsAtOnce) {
    const auto here = static_cast<unsigned>(parts - begin < kPartsAtOnce ? parts - begin : kPartsAtOnce);
    __syncthreads();
    // As many turns for every warp: those without a part add up nothing.
    for (unsigned turn = 0; turn < (here + kWarps - 1) / kWarps; ++turn) {
      const unsigned part = turn * kWarps + threadIdx.x / kWarp;
      const size_t first = (begin + part) * kSummedTogether;
      const size_t last = first + kSummedTogether < count ? first + kSummedTogether : count;
      const Sums<kSums> own = add_together<kSums>(first, part < here ? last : first, load, add);
      if (part >= here || lane_of_warp() != 0) continue;
#pragma unroll
      for (unsigned s = 0; s < kSums; ++s) shared[part * kSums + s] = own.of[s];
    }
    __syncthreads();
    for (unsigned part = 0; part < here; ++part) {
#pragma unroll
      for (unsigned s = 0; s < kSums; ++s) sums.of[s] = sums.of[s] + shared[part * kSums + s];
    }
  }
  return sums;
}

// The CPU's sum of doubles: value i in chain i % 16, the chains by halves.
BITFED_FORMULA double sum_in_sequence(const float* x, size_t count, float* tile, double* shared) {
  double sum = 0;
  for (size_t first = 0; first < count; first += kTile) {
    __syncthreads();
    for (unsigned i = threadIdx.x; i < kTile; i += kThreads) tile[i] = first + i < count ? x[first + i] : 0;
    __syncthreads();
    if (threadIdx.x >= 16) continue;
#pragma unroll 16
    for (unsigned i = threadIdx.x; i < kTile; i += 16) sum = sum + static_cast<double>(tile[i]);
  }
  return sum_of_chains(sum, shared);
}

// The sums of x and of its magnitudes in any order, by all threads.
struct AnyOrder {
  double sum = 0;
  double magnitudes = 0;

  AnyOrder() = default;
  BITFED_FORMULA AnyOrder(const float* x, size_t count, double* shared) {
#pragma unroll 4
    for (size_t at = 4 * threadIdx.x; at < count; at += 4 * kThreads) {
      const float4 four = *reinterpret_cast<const float4*>(x + at);
      sum = sum + (static_cast<double>(four.x) + static_cast<double>(four.y)) +
            (static_cast<double>(four.z) + static_cast<double>(four.w));
      magnitudes = magnitudes + (fabs(static_cast<double>(four.x)) + fabs(static_cast<double>(four.y))) +
                   (fabs(static_cast<double>(four.z)) + fabs(static_cast<double>(four.w)));
    }
    combine(shared);
  }
  // From each thread's sums to those of the block, for all threads.
  BITFED_FORMULA void combine(double* shared) {
    sum = sum_of_warp(sum);
    magnitudes = sum_of_warp(magnitudes);
    __syncthreads();
    if (lane_of_warp() == 0) {
      shared[threadIdx.x / kWarp] = sum;
      shared[kWarps + threadIdx.x / kWarp] = magnitudes;
    }
    __syncthreads();
    sum = magnitudes = 0;
    for (unsigned warp = 0; warp < kWarps; ++warp) {
      sum = sum + shared[warp];
      magnitudes = magnitudes + shared[kWarps + warp];
    }
  }
};

BITFED_FORMULA float mean_of(const float* x, size_t count, const AnyOrder& sums, double* shared) {
  float mean;
  if (settle_mean(sums.sum, sums.magnitudes, count, count, &mean)) return mean;
  const double sum = sum_in_sequence(x, count, reinterpret_cast<float*>(shared + 2 * kThreads), shared);
  return static_cast<float>(sum / static_cast<double>(count));
}

// Of an image, whose signs are written on the way.
BITFED_FORMULA float deviation_of(const float* x, size_t count, float mean, float* shared, int8_t* signs) {
  const auto sign = [&](float value) { return value >= mean ? 0x01u : 0xffu; };
  const auto add = [&](size_t i, float2 two, float* even, float* odd) {
    const float first = (two.x - mean) * 1.0f;
    const float second = (two.y - mean) * 1.0f;
    even[0] = __fmaf_rn(first, first, even[0]);
    odd[0] = __fmaf_rn(second, second, odd[0]);
    *reinterpret_cast<uint16_t*>(signs + i) = static_cast<uint16_t>(sign(two.x) | sign(two.y) << 8);
  };
  const Sums<1> squares = add_up_image<1>(
      count, shared, [&](size_t i) { return two_at(x + i); }, add);
  return sqrtf(squares.of[0] / static_cast<float>(count));
}

__global__ void __launch_bounds__(kThreads) signs_of(Cohort cohort, Signs s) {
  const uint32_t client = last_block_first_y();
  const uint32_t image = last_block_first_x();
  const uint32_t images = s.running ? cohort.images[client] : 1;
  if (image >= cohort.images[client]) return;
  BITFED_SHARED(double, doubles);
  auto* floats = reinterpret_cast<float*>(doubles);
  const size_t floats_of_image = s.in.floats();
  const size_t base = (client * size_t{cohort.batch} + image) * floats_of_image;
  const size_t count = images * floats_of_image;
  const float* x = s.x + base;
  float* to = s.means + (client * size_t{cohort.batch} + image) * 4;
  const float mean = mean_of(x, count, AnyOrder(x, count, doubles), doubles);
  float deviation = 0;
  if (!s.running) {
    deviation = deviation_of(x, count, mean, floats, s.signs + base);
  } else {
    double squares = 0;
    for (uint32_t i = 0; i < images; ++i) {
      const size_t first = i * floats_of_image;
      const double own = deviation_of(x + first, floats_of_image, mean, floats, s.signs + base + first);
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

// The last pass of a batch norm over an image, whose signs are taken while the cache has it.
template <bool kWhole>
__global__ void __launch_bounds__(kThreads) norm_signs_of(Cohort cohort, Norm n, Signs s) {
  const uint32_t client = blockIdx.y;
  const uint32_t image = blockIdx.x;
  if (image >= cohort.images[client]) return;
  BITFED_SHARED(double, doubles);
  const size_t count = n.in.floats();
  const size_t base = (client * size_t{cohort.batch} + image) * count;
  const bool same_channels = 4 * kThreads % n.in.channels == 0;
  ChannelValues of(n, client, 4 * threadIdx.x % n.in.channels);
  AnyOrder sums;
#pragma unroll 4
  for (uint32_t at = 4 * threadIdx.x; at < count; at += 4 * kThreads) {
    if (!same_channels) of = ChannelValues(n, client, at % n.in.channels);
    Four x(input_of<kWhole>(n) + base + at);
    apply(n, of, n.added == nullptr ? x : Four(n.added + base + at), &x);
    x.store(n.out + base + at);
#pragma unroll
    for (unsigned j = 0; j < 4; ++j) {
      const double value = x.v[j];
      sums.sum = sums.sum + value;
      sums.magnitudes = sums.magnitudes + fabs(value);
    }
  }
  sums.combine(doubles);  // behind a barrier: the image is there for all threads
  const float mean = mean_of(n.out + base, count, sums, doubles);
  const float deviation =
      deviation_of(n.out + base, count, mean, reinterpret_cast<float*>(doubles), s.signs + base);
  if (threadIdx.x != 0) return;
  float* to = s.means + (client * size_t{cohort.batch} + image) * 4;
  to[0] = mean;
  to[1] = 1 / (deviation + kTiny);
}

__global__ void __launch_bounds__(kThreads)
    signs_back(Cohort cohort, Signs s, const float* gradients, const float* other, float* x_gradients) {
  const uint32_t client = last_block_first_y();
  const uint32_t image = last_block_first_x();
  const uint32_t images = s.running ? cohort.images[client] : 1;
  if (image >= cohort.images[client]) return;
  BITFED_SHARED(float, floats);
  const size_t base = (client * size_t{cohort.batch} + image) * s.in.floats();
  const size_t count = images * s.in.floats();
  const float* x = s.x + base;
  const float* gradient = gradients + base;
  const float* means = s.means + (client * size_t{cohort.batch} + image) * 4;
  const float mean = means[0];
  const float inverse = means[1];
  const Slope slope(Surrogate{1, 1});
  struct Values {
    float2 x, gradient;
  };
  const auto load = [&](size_t i) { return Values{two_at(x + i), two_at(gradient + i)}; };
  const auto add_both = [&](size_t /*i*/, const Values& v, float* even, float* odd) {
    const auto add = [&](float one, float of_one, float* sums) {
      const float normal = (one - mean) * inverse;
      const float passed = of_one * slope.at(all(normal)).v;
      sums[0] = sums[0] + passed;
      sums[1] = __fmaf_rn(passed, normal, sums[1]);
    };
    add(v.x.x, v.gradient.x, even);
    add(v.x.y, v.gradient.y, odd);
  };
  const Sums<2> both = add_up_image<2>(count, floats, load, add_both);
  const float mean_sum = both.of[0] / static_cast<float>(count);
  const float mean_along = -both.of[1] / static_cast<float>(count);
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

void norm_signs(const Cohort& cohort, const Norm& n, const Signs& s, const Stream& stream) {
  launch(of_input(n, norm_signs_of<true>, norm_signs_of<false>), blocks_of(cohort, s), kThreads, kSharedBytes,
         stream, cohort, n, s);
}

void signs_backward(const Cohort& cohort, const Signs& s, const float* gradient, const float* other,
                    float* x_gradient, const Stream& stream) {
  launch(signs_back, blocks_of(cohort, s), kThreads, kSharedBytes, stream, cohort, s, gradient, other,
         x_gradient);
}

}  // namespace bitfed::cuda
