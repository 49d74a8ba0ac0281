// Rotated binary weights, see RotatedWeights: several layers of all clients in one launch. Sums over a filter
// are a warp's; a block rotates a filter at a time.

#include "bitfed/cuda/filters.h"

#include <algorithm>

namespace bitfed::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr size_t kChainBytes = kThreads * sizeof(double);  // for what threads combine
constexpr unsigned kLargeBlocks = 16;  // of a layer and client whose filters are too large for shared memory

constexpr float kRounded = 0.998f;  // as in rotation.cc

BITFED_FORMULA float absolute_sine(float angle) {
  const float value = sine(angle);
  return value < 0 ? -value : value;
}
BITFED_FORMULA float slope_of_absolute_sine(float angle) {
  return sine(angle) >= 0 ? cosine(angle) : -cosine(angle);
}
BITFED_FORMULA float beta_of(const Rotated& r, uint32_t client) {
  return r.beta ? absolute_sine(*r.gamma.at(client)) : 0.0f;
}

// ------------------------------------------------------------------------------------------------ memory
// A filter, and W R2 transposed, one after the other in the same place.
BITFED_HOST_DEVICE size_t whole_bytes(const FilterMatrix& s) {
  const size_t filter = 2 * plane_bytes(s.rows, s.columns);
  const size_t halfway = 2 * plane_bytes(s.columns, s.rows);
  return filter > halfway ? filter : halfway;
}
// Rows of W R2 transposed as floats: their pairs of values meet all banks.
BITFED_HOST_DEVICE uint32_t halfway_step(const FilterMatrix& s) {
  return plane_rows(s.rows) + 8;
}
BITFED_HOST_DEVICE size_t filter_memory(const FilterMatrix& s) {
  return rotation_bytes(s) + whole_bytes(s) + size_t{s.columns} * halfway_step(s) * sizeof(float);
}

struct FilterMemory {
  bool in_shared;
  unsigned* words;
  Planes right, left, filter, halfway;
  float* halfway_floats;

  BITFED_FORMULA FilterMemory(const Rotated& r, uint32_t client, double* shared) {
    const FilterMatrix& s = r.shape;
    in_shared = r.scratch == nullptr;
    words = reinterpret_cast<unsigned*>(shared);
    auto* own = in_shared ? reinterpret_cast<int8_t*>(shared) + kChainBytes
                          : r.scratch + (size_t{client} * kLargeBlocks + blockIdx.x) * filter_memory(s);
    right = planes_at(own, s.columns, s.columns);
    left = planes_at(own + right_bytes(s), s.rows, s.rows);
    own += rotation_bytes(s);
    filter = planes_at(own, s.rows, s.columns);
    halfway = planes_at(own, s.columns, s.rows);
    halfway_floats = reinterpret_cast<float*>(own + whole_bytes(s));
  }
};

// The filters of a block: f = first, first + step, ...
struct OwnFilters {
  uint32_t first, step;

  BITFED_FORMULA explicit OwnFilters(const Rotated& r, uint32_t together) {
    first = blockIdx.x;
    step = r.scratch != nullptr ? kLargeBlocks : (r.filters + together - 1) / together;
    if (first >= step) first = r.filters;
  }
};

BITFED_FORMULA float largest_of_block(unsigned found, unsigned* words) {
  __syncthreads();
  words[threadIdx.x] = found;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half && words[threadIdx.x + half] > words[threadIdx.x])
      words[threadIdx.x] = words[threadIdx.x + half];
  }
  __syncthreads();
  return largest_found(words[0]);
}

// ------------------------------------------------------------------------------------------------ rotations
// R1 and R2 in fixed point, as rows of what multiplies from the left: transposed for the forward pass.
__global__ void __launch_bounds__(kThreads) round_rotations(RotatedPlan plan, uint64_t mask) {
  BITFED_SHARED(double, shared);
  const Rotated& r = plan.layers[blockIdx.y];
  const uint32_t client = blockIdx.z;
  if (!r.rotates || !is_masked(mask, client)) return;
  const bool back = blockIdx.x / 2 != 0;
  const bool of_rows = blockIdx.x % 2 != 0;
  const uint32_t size = of_rows ? r.shape.rows : r.shape.columns;
  const uint32_t stride = of_rows ? r.r1_stride : r.shape.stride;
  const float* rotation = of_rows ? r.r1.at(client) : r.r2.at(client);
  const auto at = [&](uint32_t row, uint32_t k) {
    return back ? rotation[size_t{row} * stride + k] : rotation[size_t{k} * stride + row];
  };
  double longest = 0;
  for (uint32_t row = threadIdx.x; row < size; row += kThreads) {
    double squares = 0;
#pragma unroll 8
    for (uint32_t k = 0; k < size; ++k) {
      const double value = at(row, k);
      squares = squares + value * value;
    }
    longest = longest < squares ? squares : longest;
  }
  shared[threadIdx.x] = longest;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half && shared[threadIdx.x] < shared[threadIdx.x + half])
      shared[threadIdx.x] = shared[threadIdx.x + half];
  }
  __syncthreads();
  const float factor = factor_to(kOfRotation, static_cast<float>(sqrt(shared[0])));
  if (threadIdx.x == 0) r.rotation_factors[client * 4 + blockIdx.x] = factor;
  int8_t* to = rotations_of(r, client, back) + (of_rows ? right_bytes(r.shape) : 0);
  const Planes planes = planes_at(to, size, size);
  for (uint32_t i = threadIdx.x; i < size * size; i += kThreads) {
    // Neighbours in memory by neighbouring threads. What lies beyond the size stays 0.
    const uint32_t row = back ? i / size : i % size;
    const uint32_t k = back ? i % size : i / size;
    put_whole(planes, row * planes.step + k, to_short(at(row, k) * factor));
  }
}

// put(row, column, value, value of the next column) of what FilterRotation::rotate() makes of the filter,
// whose four neighbours are from(row, column).
template <typename From, typename Put>
BITFED_FORMULA void rotate(const Rotated& r, const float* rotation_factors, float largest,
                           const FilterMemory& m, From from, Put put) {
  const FilterMatrix& s = r.shape;
  const float own = factor_to(kRounded * max_times_rotation(s.columns), largest);
  const auto put_four = [](const Planes& planes, uint32_t at, float4 four, float factor) {
    put_whole_four(planes, at, to_short(four.x * factor), to_short(four.y * factor),
                   to_short(four.z * factor), to_short(four.w * factor));
  };
  const Divisor fours((s.columns + 3) / 4);
  __syncthreads();
#pragma unroll 4
  for (uint32_t i = threadIdx.x; i < s.rows * fours.of; i += kThreads) {
    const uint32_t row = fours.quotient(i);
    const uint32_t column = (i - row * fours.of) * 4;
    put_four(m.filter, row * m.filter.step + column, from(row, column), own);
  }
  __syncthreads();
  const uint32_t step = halfway_step(s);
  const float right = 1 / (own * rotation_factors[0]);
  unsigned found = 0;
  multiply_planes(m.right, s.columns, m.filter, s.rows, s.columns, m.in_shared,
                  [&](uint32_t column, uint32_t row, int first, int second) {
                    if (column >= s.columns || row >= s.rows) return;
                    float2 two{static_cast<float>(first) * right, static_cast<float>(second) * right};
                    if (row + 1 >= s.rows) two.y = 0;
                    found = larger_bits(larger_bits(found, two.x), two.y);
                    *reinterpret_cast<float2*>(m.halfway_floats + column * step + row) = two;
                  });
  const float half = factor_to(kRounded * max_times_rotation(s.rows), largest_of_block(found, m.words));
  // What lies beyond the rows does not matter: the left rotation is 0 there.
  const Divisor down((s.rows + 3) / 4);
#pragma unroll 4
  for (uint32_t i = threadIdx.x; i < s.columns * down.of; i += kThreads) {
    const uint32_t column = down.quotient(i);
    const uint32_t row = (i - column * down.of) * 4;
    put_four(m.halfway, column * m.halfway.step + row,
             *reinterpret_cast<const float4*>(m.halfway_floats + column * step + row), half);
  }
  __syncthreads();
  const float left = 1 / (half * rotation_factors[1]);
  multiply_planes(m.left, s.rows, m.halfway, s.columns, s.rows, m.in_shared,
                  [&](uint32_t row, uint32_t column, int first, int second) {
                    if (row >= s.rows || column >= s.columns) return;
                    put(row, column, static_cast<float>(first) * left,
                        column + 1 < s.columns ? static_cast<float>(second) * left : 0.0f);
                  });
}

// ------------------------------------------------------------------------------------------------ forward
BITFED_FORMULA void put_sign(const Rotated& r, uint32_t client, uint32_t f, uint32_t input, bool positive) {
  if (r.signs != nullptr) {
    r.signs[(client * size_t{r.filters} + f) * r.inputs + input] = static_cast<int8_t>(positive ? 1 : -1);
  } else {
    r.sign_weights.at(client)[size_t{input} * r.sign_stride + f] = positive ? 1.0f : -1.0f;
  }
}

// And the signs, if there is no rotation.
__global__ void __launch_bounds__(kFilterThreads) standardise_all(Cohort cohort, RotatedPlan plan) {
  const Rotated& r = plan.layers[blockIdx.y];
  const uint32_t f = filter_of_warp();
  const uint32_t client = blockIdx.z;
  if (f >= r.filters || cohort.images[client] == 0) return;
  const size_t filter = client * size_t{r.filters} + f;
  const size_t at = filter_at(r, client, f);
  const FusedFilter fused(r, client, f);
  const Standardised by = standardise(r.shape, r.inputs, fused);
  const float beta = beta_of(r, client);
  unsigned found = 0;
  for_pairs(r.shape, fused, [&](const FilterPair& pair, float2 own) {
    const float2 two = standardised(pair, own, by);
    pair.put_matrix(r.standard + at, two);
    found = larger_bits(larger_bits(found, two.x), two.y);
    if (r.rotates) return;
    const float2 anchor = r.beta ? two_at(r.anchor_standard + at + pair.at) : float2{0, 0};
    const Blend first(all(two.x), all(two.x), all(anchor.x), 0.0f, beta);
    const Blend second(all(two.y), all(two.y), all(anchor.y), 0.0f, beta);
    if (pair.first) put_sign(r, client, f, pair.weight, first.blended.v >= 0);
    if (pair.second) put_sign(r, client, f, pair.weight + 1, second.blended.v >= 0);
  });
  found = largest_of_warp(found);
  if (lane_of_warp() != 0) return;
  r.largest_of_filters[filter] = largest_found(found);
  r.inverse[filter] = by.inverse;
  r.alphas[filter] = r.rotates ? absolute_sine(r.theta.at(client)[f]) : 0.0f;
}

__global__ void __launch_bounds__(kThreads, 3)
    take_signs(Cohort cohort, RotatedPlan plan, uint32_t together) {
  BITFED_SHARED(double, shared);
  const Rotated& r = plan.layers[blockIdx.y];
  const uint32_t client = blockIdx.z;
  const OwnFilters own(r, together);
  if (own.first >= r.filters || cohort.images[client] == 0) return;
  const FilterMatrix s = r.shape;
  const FilterMemory m(r, client, shared);
  copy_planes(rotations_of(r, client, false), rotation_bytes(s), m.right.high);
  const float beta = beta_of(r, client);
  for (uint32_t f = own.first; f < r.filters; f += own.step) {
    const size_t filter = client * size_t{r.filters} + f;
    const size_t place = filter_at(r, client, f);
    const float alpha = r.alphas[filter];
    const auto positive = [&](size_t at, float weight, float rotated) {
      const float anchor = r.beta ? r.anchor_standard[at] : 0.0f;
      return Blend(all(weight), all(rotated), all(anchor), alpha, beta).blended.v >= 0;
    };
    rotate(
        r, r.rotation_factors + client * 4, r.largest_of_filters[filter], m,
        [&](uint32_t row, uint32_t column) {
          return *reinterpret_cast<const float4*>(r.standard + place + row * s.stride + column);
        },
        [&](uint32_t row, uint32_t column, float first, float second) {
          const size_t at = place + row * s.stride + column;
          *reinterpret_cast<float2*>(r.rotated + at) = float2{first, second};
          const float2 weights = *reinterpret_cast<const float2*>(r.standard + at);
          const bool pair = column + 1 < s.columns;
          const bool one = positive(at, weights.x, first);
          const bool two = pair && positive(at + 1, weights.y, second);
          const uint32_t input = row * s.columns + column;
          if (r.signs != nullptr && s.columns % 2 == 0) {
            put_byte_pair(r.signs + filter * r.inputs + input, one ? 1u : 0xffu, two ? 1u : 0xffu);
            return;
          }
          put_sign(r, client, f, input, one);
          if (pair) put_sign(r, client, f, input + 1, two);
        });
  }
}

// ------------------------------------------------------------------------------------------------ backward
// The gradient of a sign.
BITFED_FORMULA float sign_gradient_at(const Rotated& r, uint32_t client, uint32_t f, uint32_t input) {
  if (r.sums == nullptr) return r.sign_gradient.at(client)[size_t{input} * r.sign_stride + f];
  const float factor = r.factor[client];
  if (!(factor > 0)) return factor;  // all gradients are 0, or one is not finite
  return static_cast<float>(r.sums[(client * size_t{r.filters} + f) * r.inputs + input]) * (1 / factor);
}

// g, the gradient of what the signs are of, takes the place of the rotated filters, or of nothing.
__global__ void __launch_bounds__(kFilterThreads) blend_backward(Cohort cohort, RotatedPlan plan) {
  const Rotated& r = plan.layers[blockIdx.y];
  const uint32_t f = filter_of_warp();
  const uint32_t client = blockIdx.z;
  if (f >= r.filters || cohort.images[client] == 0) return;
  const size_t filter = client * size_t{r.filters} + f;
  const size_t at = filter_at(r, client, f);
  const float alpha = r.alphas[filter];
  const float beta = beta_of(r, client);
  const Slope slope(r.surrogates[client]);
  unsigned found = 0;
  const auto g_of = [&](float weight, float rotated, float anchor, float of_sign, float* sums) {
    const Blend blend(all(weight), all(rotated), all(anchor), alpha, beta);
    const float g = of_sign * slope.at(blend.blended).v;
    sums[0] = __fmaf_rn(g, blend.to_rotated.v, sums[0]);
    if (r.beta) sums[1] = __fmaf_rn(g, blend.to_anchor.v, sums[1]);
    found = larger_bits(found, alpha * g);
    return g;
  };
  struct Values {
    float2 weight, rotated, anchor, of_sign;
  };
  const auto load = [&](const FilterPair& pair) {
    Values values;
    values.weight = two_at(r.standard + at + pair.at);
    values.rotated = r.rotates ? two_at(r.rotated + at + pair.at) : values.weight;
    values.anchor = r.beta ? two_at(r.anchor_standard + at + pair.at) : float2{0, 0};
    values.of_sign = {pair.first ? sign_gradient_at(r, client, f, pair.weight) : 0.0f,
                      pair.second ? sign_gradient_at(r, client, f, pair.weight + 1) : 0.0f};
    return values;
  };
  const auto add = [&](const FilterPair& pair, const Values& v, float* even, float* odd) {
    pair.put_matrix(r.rotated + at, {g_of(v.weight.x, v.rotated.x, v.anchor.x, v.of_sign.x, even),
                                     g_of(v.weight.y, v.rotated.y, v.anchor.y, v.of_sign.y, odd)});
  };
  const Sums<2> both = add_up_filter<2>(r.shape, load, add);
  found = largest_of_warp(found);
  if (lane_of_warp() != 0) return;
  r.largest_of_filters[filter] = largest_found(found);
  if (r.rotates) r.theta_gradient.at(client)[f] = both.of[0] * slope_of_absolute_sine(r.theta.at(client)[f]);
  r.pulls[filter * 2] = both.of[1];
}

// The gradient of the standardised weights in the place of g.
__global__ void __launch_bounds__(kThreads, 3)
    rotate_backward(Cohort cohort, RotatedPlan plan, uint32_t together) {
  BITFED_SHARED(double, shared);
  const Rotated& r = plan.layers[blockIdx.y];
  const uint32_t client = blockIdx.z;
  const OwnFilters own(r, together);
  if (own.first >= r.filters || cohort.images[client] == 0) return;
  const FilterMatrix s = r.shape;
  const FilterMemory m(r, client, shared);
  copy_planes(rotations_of(r, client, true), rotation_bytes(s), m.right.high);
  const float beta = beta_of(r, client);
  for (uint32_t f = own.first; f < r.filters; f += own.step) {
    const size_t filter = client * size_t{r.filters} + f;
    const float alpha = r.alphas[filter];
    const float rest = 1 - alpha - beta;
    float* g = r.rotated + filter_at(r, client, f);
    rotate(
        r, r.rotation_factors + client * 4 + 2, r.largest_of_filters[filter], m,
        [&](uint32_t row, uint32_t column) {
          const float4 four = *reinterpret_cast<const float4*>(g + row * s.stride + column);
          return float4{alpha * four.x, alpha * four.y, alpha * four.z, alpha * four.w};
        },
        [&](uint32_t row, uint32_t column, float first, float second) {
          auto* to = reinterpret_cast<float2*>(g + row * s.stride + column);
          *to = float2{rest * to->x + first, rest * to->y + second};
        });
  }
}

__global__ void __launch_bounds__(kFilterThreads) fuse_backward(Cohort cohort, RotatedPlan plan) {
  const Rotated& r = plan.layers[blockIdx.y];
  const uint32_t f = filter_of_warp();
  const uint32_t client = blockIdx.z;
  if (f >= r.filters || cohort.images[client] == 0) return;
  const size_t filter = client * size_t{r.filters} + f;
  const size_t at = filter_at(r, client, f);
  const float lambda = lambda_of(r, client);
  const float rest = 1 - 0.0f - beta_of(r, client);
  struct Values {
    float2 g, weight;
  };
  const auto load = [&](const FilterPair& pair) {
    float2 g = two_at(r.rotated + at + pair.at);
    if (!r.rotates) g = {rest * g.x + 0.0f * g.x, rest * g.y + 0.0f * g.y};
    return Values{g, two_at(r.standard + at + pair.at)};
  };
  const auto add = [&](const FilterPair& /*pair*/, const Values& v, float* even, float* odd) {
    even[0] = even[0] + v.g.x;
    even[1] = __fmaf_rn(v.g.x, v.weight.x, even[1]);
    odd[0] = odd[0] + v.g.y;
    odd[1] = __fmaf_rn(v.g.y, v.weight.y, odd[1]);
  };
  const Sums<2> both = add_up_filter<2>(r.shape, load, add);
  const float sum = both.of[0] / static_cast<float>(r.inputs);
  const float along = -both.of[1] / static_cast<float>(r.inputs);
  const float inverse = r.inverse[filter];
  float* to = r.weights_gradient.at(client) + size_t{f} * r.weights_stride;
  const float* local = r.weights.at(client) + size_t{f} * r.weights_stride;
  const auto put_gradient = [&](const FilterPair& pair, const Values& v) {
    const float2 fused = pair.masked({__fmaf_rn(along, v.weight.x, v.g.x - sum) * inverse,
                                      __fmaf_rn(along, v.weight.y, v.g.y - sum) * inverse});
    pair.put_weights(to, {lambda * fused.x, lambda * fused.y});
    return fused;
  };
  if (!r.lambda) {
    for_pairs(r.shape, load, put_gradient);
    return;
  }
  const auto add_pull = [&](const FilterPair& pair, const Values& v, float* even, float* odd) {
    const float2 fused = put_gradient(pair, v);
    const float2 own = pair.of_weights(local);
    const float2 anchor = two_at(r.anchor + at + pair.at);
    even[0] = __fmaf_rn(fused.x, own.x - anchor.x, even[0]);
    odd[0] = __fmaf_rn(fused.y, own.y - anchor.y, odd[0]);
  };
  const Sums<1> pull = add_up_filter<1>(r.shape, load, add_pull);
  if (lane_of_warp() == 0) r.pulls[filter * 2 + 1] = pull.of[0];
}

// The gradients of gamma and lambda, summed over the filters in their order.
__global__ void add_pulls(Cohort cohort, RotatedPlan plan) {
  const Rotated& r = plan.layers[blockIdx.x];
  const uint32_t client = threadIdx.x;
  if (client >= cohort.clients || cohort.images[client] == 0) return;
  const float* pulls = r.pulls + client * size_t{r.filters} * 2;
  float of_beta = 0;
  float of_lambda = 0;
#pragma unroll 16
  for (uint32_t f = 0; f < r.filters; ++f) {
    of_beta = of_beta + pulls[2 * f];
    of_lambda = of_lambda + pulls[2 * f + 1];
  }
  if (r.beta) *r.gamma_gradient.at(client) = of_beta * slope_of_absolute_sine(*r.gamma.at(client));
  if (r.lambda) *r.lambda_gradient.at(client) = of_lambda;
}

// ------------------------------------------------------------------------------------------------ rounds
__global__ void __launch_bounds__(kFilterThreads) set_anchor(RotatedPlan plan, uint64_t mask) {
  const Rotated& r = plan.layers[blockIdx.y];
  const uint32_t f = filter_of_warp();
  const uint32_t client = blockIdx.z;
  if (f >= r.filters || !is_masked(mask, client)) return;
  FusedFilter own(r, client, f);
  own.fuses = false;
  const Standardised by = standardise(r.shape, r.inputs, own);
  const size_t at = filter_at(r, client, f);
  for_pairs(r.shape, own, [&](const FilterPair& pair, float2 two) {
    pair.put_matrix(r.anchor + at, two);
    pair.put_matrix(r.anchor_standard + at, standardised(pair, two, by));
  });
}

__global__ void fuse(RotatedPlan plan, uint64_t mask) {
  const Rotated& r = plan.layers[blockIdx.y];
  const uint32_t f = blockIdx.x;
  const uint32_t client = blockIdx.z;
  if (f >= r.filters || !is_masked(mask, client)) return;
  const float lambda = lambda_of(r, client);
  for (uint32_t i = threadIdx.x; i < r.shape.floats(); i += blockDim.x) {
    if (!has_weight(r.shape, i)) continue;
    const float fused = fused_at(r, client, f, i, lambda);
    r.weights.at(client)[size_t{f} * r.weights_stride + weight_at(r.shape, i)] = fused;
  }
}

Blocks filter_blocks(const Cohort& cohort, const RotatedPlan& plan) {
  return {warp_blocks(plan.max_filters), plan.count, cohort.clients};
}

// Filters of a block, one after the other: with many, rotations are loaded more seldom.
uint32_t filters_together(const Cohort& cohort) {
  return cohort.clients > 4 ? 4 : 1;
}

Blocks group_blocks(const Cohort& cohort, const RotatedPlan& plan) {
  const uint32_t together = filters_together(cohort);
  return {std::max(kLargeBlocks, (plan.max_filters + together - 1) / together), plan.count, cohort.clients};
}

}  // namespace

size_t rotated_scratch_bytes(const Rotated& r, uint32_t clients) {
  const size_t bytes = filter_memory(r.shape);
  return !r.rotates || bytes + kChainBytes <= kMaxShared ? 0 : bytes * clients * kLargeBlocks;
}

size_t rotated_rotation_bytes(const Rotated& r) {
  return 2 * rotation_bytes(r.shape);
}

RotatedPlan plan_rotated(std::span<const Rotated> layers) {
  RotatedPlan plan;
  plan.count = static_cast<uint32_t>(layers.size());
  for (const Rotated& r : layers) {
    plan.max_filters = std::max(plan.max_filters, r.filters);
    plan.pulls = plan.pulls || r.lambda || r.beta;
    plan.rotates = plan.rotates || r.rotates;
    if (r.rotates && r.scratch == nullptr) plan.shared = std::max(plan.shared, filter_memory(r.shape));
  }
  plan.shared += kChainBytes;
  return plan;
}

void rotated_set_anchor(const Cohort& cohort, const RotatedPlan& plan, uint64_t mask, const Stream& stream) {
  launch(set_anchor, filter_blocks(cohort, plan), kFilterThreads, 0, stream, plan, mask);
}

void rotated_fuse(const Cohort& cohort, const RotatedPlan& plan, uint64_t mask, const Stream& stream) {
  launch(fuse, Blocks{plan.max_filters, plan.count, cohort.clients}, kFilterThreads, 0, stream, plan, mask);
}

void take_rotations(const Cohort& cohort, const RotatedPlan& plan, uint64_t mask, const Stream& stream) {
  if (plan.rotates)
    launch(round_rotations, Blocks{4, plan.count, cohort.clients}, kThreads, kChainBytes, stream, plan, mask);
}

void rotated_forward(const Cohort& cohort, const RotatedPlan& plan, const Stream& stream) {
  launch(standardise_all, filter_blocks(cohort, plan), kFilterThreads, 0, stream, cohort, plan);
  if (plan.rotates)
    launch(take_signs, group_blocks(cohort, plan), kThreads, plan.shared, stream, cohort, plan,
           filters_together(cohort));
}

void rotated_backward(const Cohort& cohort, const RotatedPlan& plan, const Stream& stream) {
  launch(blend_backward, filter_blocks(cohort, plan), kFilterThreads, 0, stream, cohort, plan);
  if (plan.rotates)
    launch(rotate_backward, group_blocks(cohort, plan), kThreads, plan.shared, stream, cohort, plan,
           filters_together(cohort));
  launch(fuse_backward, filter_blocks(cohort, plan), kFilterThreads, 0, stream, cohort, plan);
  if (plan.pulls) launch(add_pulls, Blocks{plan.count}, 64, 0, stream, cohort, plan);
}

}  // namespace bitfed::cuda
