// Rotated binary weights, see RotatedWeights. What has sums over a filter takes sixteen threads a filter; the
// products with R1 and R2 take a block some filters.

#include "bitfed/cuda/filters.h"

#include <algorithm>

namespace bitfed::cuda {
namespace {

constexpr unsigned kThreads = 128;  // eight filters
constexpr size_t kChainBytes = kThreads * sizeof(double);
constexpr unsigned kRotateThreads =
    288;  // 2 x 288 tiles of 4 x 4 are two filters of 72 x 64, or four of 48 x 48
constexpr uint32_t kRotateTiles = 576;
constexpr size_t kRotateShared = 110 << 10;  // two blocks at a time

BITFED_FORMULA float absolute_sine(float angle) {
  const float value = sine(angle);
  return value < 0 ? -value : value;
}
BITFED_FORMULA float slope_of_absolute_sine(float angle) {
  return sine(angle) >= 0 ? cosine(angle) : -cosine(angle);
}
BITFED_FORMULA float alpha_of(const Rotated& r, uint32_t client, uint32_t f) {
  return r.rotates ? absolute_sine(r.theta.at(client)[f]) : 0.0f;
}
BITFED_FORMULA float beta_of(const Rotated& r, uint32_t client) {
  return r.beta ? absolute_sine(*r.gamma.at(client)) : 0.0f;
}

__global__ void __launch_bounds__(kThreads) standardise_all(Cohort cohort, Rotated r) {
  BITFED_SHARED(double, shared);
  const FilterThreads threads(shared);
  const uint32_t client = blockIdx.y;
  if (cohort.images[client] == 0) return;
  const uint32_t f = threads.filter < r.filters ? threads.filter : r.filters - 1;
  const uint32_t count = threads.filter < r.filters ? r.shape.floats() : 0;
  const FusedFilter at(r, client, f);
  const Standardised by = standardise(r.shape, r.inputs, count, threads, at);
  float* to = r.standard + filter_at(r, client, f);
  for_filter(r.shape, count, threads.lane, at,
             [&](const Walk& w, float value) { to[w.i] = standardised(w.has_weight(r.shape), value, by); });
  if (threads.filter < r.filters && threads.lane == 0)
    r.alphas[client * size_t{r.filters} + f] = alpha_of(r, client, f);
  if (count > 0 && threads.lane == 0) r.inverse[client * size_t{r.filters} + f] = by.inverse;
}

// ------------------------------------------------------------------------------------------------ products
BITFED_HOST_DEVICE uint32_t up_to_four(uint32_t n) {
  return (n + 3) / 4 * 4;
}

uint32_t filters_together(const FilterMatrix& s) {
  const uint32_t rows = up_to_four(s.rows);
  const uint32_t columns = up_to_four(s.columns);
  const uint32_t wanted = std::max(1u, kRotateTiles / (rows / 4 * (columns / 4)));
  const size_t rotations = (size_t{s.rows} * rows + size_t{s.columns} * columns) * sizeof(float);
  const size_t filter = 2 * size_t{rows} * columns * sizeof(float);
  if (rotations + filter > kMaxShared) return 0;
  const size_t fits = rotations + filter > kRotateShared ? 1 : (kRotateShared - rotations) / filter;
  return static_cast<uint32_t>(std::min<size_t>({wanted, fits, 32}));
}

size_t rotate_bytes(const FilterMatrix& s, uint32_t together) {
  const size_t rows = up_to_four(s.rows);
  const size_t columns = up_to_four(s.columns);
  return (s.rows * rows + s.columns * columns + 2 * together * rows * columns) * sizeof(float);
}

// sums += a' b of 4 x 4: a is [depth][a_step], b [depth][b_step].
BITFED_FORMULA void multiply_tile(const float* a, uint32_t a_step, const float* b, uint32_t b_step,
                                  uint32_t depth, float (&sums)[4][4]) {
#pragma unroll 4
  for (uint32_t k = 0; k < depth; ++k) {
    const float4 v = *reinterpret_cast<const float4*>(a + k * a_step);
    const float4 w = *reinterpret_cast<const float4*>(b + k * b_step);
    const float x[4] = {v.x, v.y, v.z, v.w};
    const float y[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
#pragma unroll
      for (unsigned j = 0; j < 4; ++j) sums[i][j] = __fmaf_rn(x[i], y[j], sums[i][j]);
    }
  }
}

// From the filters `from` to put(filter of the block, row, column, four values of R1' W R2, or backward R1 W
// R2').
template <bool kBackward, typename From, typename Put>
BITFED_FORMULA void rotate(const Rotated& r, uint32_t client, uint32_t count, uint32_t together, From from,
                           Put put) {
  BITFED_SHARED(float, shared);
  const FilterMatrix& s = r.shape;
  const uint32_t rows = up_to_four(s.rows);
  const uint32_t columns = up_to_four(s.columns);
  const uint32_t floats = rows * columns;
  float* left = shared;                          // left[k][row]: what multiplies row k of the halfway matrix
  float* right = left + s.rows * rows;           // right[k][column]
  float* filters = right + s.columns * columns;  // [filter][column][row]
  float* halfway = filters + together * floats;  // [filter][row][column]
  const float* r1 = r.r1.at(client);
  const float* r2 = r.r2.at(client);
  for (uint32_t i = threadIdx.x; i < s.rows * rows; i += blockDim.x) {
    const uint32_t k = i / rows;
    const uint32_t row = i % rows;
    left[i] = row < s.rows ? (kBackward ? r1[row * r.r1_stride + k] : r1[k * r.r1_stride + row]) : 0.0f;
  }
  for (uint32_t i = threadIdx.x; i < s.columns * columns; i += blockDim.x) {
    const uint32_t k = i / columns;
    const uint32_t column = i % columns;
    right[i] =
        column < s.columns ? (kBackward ? r2[column * s.stride + k] : r2[k * s.stride + column]) : 0.0f;
  }
  for (uint32_t i = threadIdx.x; i < count * floats; i += blockDim.x) {
    const uint32_t f = i / floats;
    const uint32_t row = i % floats / columns;
    const uint32_t column = i % columns;
    const bool inside = row < s.rows && column < s.columns;
    filters[f * floats + column * rows + row] = inside ? from(f, row, column) : 0.0f;
  }
  __syncthreads();
  const uint32_t across_tiles = columns / 4;
  const uint32_t tiles = rows / 4 * across_tiles;
  for (uint32_t tile = threadIdx.x; tile < count * tiles; tile += blockDim.x) {
    const uint32_t f = tile / tiles;
    const uint32_t row = tile % tiles / across_tiles * 4;
    const uint32_t column = tile % across_tiles * 4;
    const float* a = filters + f * floats + row;
    const float* b = right + column;
    float sums[4][4] = {};
    multiply_tile(a, rows, b, columns, s.columns, sums);
#pragma unroll
    for (unsigned i = 0; i < 4; ++i)
      *reinterpret_cast<float4*>(halfway + f * floats + (row + i) * columns + column) =
          float4{sums[i][0], sums[i][1], sums[i][2], sums[i][3]};
  }
  __syncthreads();
  for (uint32_t tile = threadIdx.x; tile < count * tiles; tile += blockDim.x) {
    const uint32_t f = tile / tiles;
    const uint32_t row = tile % tiles / across_tiles * 4;
    const uint32_t column = tile % across_tiles * 4;
    const float* a = left + row;
    const float* b = halfway + f * floats + column;
    float sums[4][4] = {};
    multiply_tile(a, rows, b, columns, s.rows, sums);
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      if (row + i < s.rows) put(f, row + i, column, sums[i]);
    }
  }
}

// The same where shared memory is too small: a block a filter, in the memory of the device.
template <bool kBackward, typename From, typename Put>
BITFED_FORMULA void rotate_large(const Rotated& r, uint32_t client, uint32_t filter, From from, Put put) {
  const FilterMatrix& s = r.shape;
  float* own = r.halfway + filter_at(r, client, filter) * 2;
  float* halfway = own + s.floats();
  const float* r1 = r.r1.at(client);
  const float* r2 = r.r2.at(client);
  for (uint32_t i = threadIdx.x; i < s.floats(); i += blockDim.x)
    own[i] = has_weight(s, i) ? from(0u, i / s.stride, i % s.stride) : 0.0f;
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < s.floats(); i += blockDim.x) {
    const uint32_t column = i % s.stride;
    float sum = 0;
    for (uint32_t k = 0; k < s.columns && column < s.columns; ++k)
      sum = __fmaf_rn(own[i - column + k],
                      kBackward ? r2[size_t{column} * s.stride + k] : r2[size_t{k} * s.stride + column], sum);
    halfway[i] = sum;
  }
  __syncthreads();
  for (uint32_t i = 4 * threadIdx.x; i < s.floats(); i += 4 * blockDim.x) {
    const uint32_t row = i / s.stride;
    float sums[4] = {};
    for (uint32_t k = 0; k < s.rows; ++k) {
      const float a = kBackward ? r1[size_t{row} * r.r1_stride + k] : r1[size_t{k} * r.r1_stride + row];
      for (unsigned j = 0; j < 4; ++j)
        sums[j] = __fmaf_rn(a, halfway[size_t{k} * s.stride + i % s.stride + j], sums[j]);
    }
    put(0u, row, i % s.stride, sums);
  }
}

BITFED_FORMULA void put_sign(const Rotated& r, uint32_t client, uint32_t f, uint32_t i, const Blend& blend) {
  const bool positive = blend.blended.v >= 0;
  const uint32_t input = weight_at(r.shape, i);
  if (r.signs != nullptr) {
    r.signs[(client * size_t{r.filters} + f) * r.inputs + input] = static_cast<int8_t>(positive ? 1 : -1);
  } else {
    r.sign_weights.at(client)[size_t{input} * r.sign_stride + f] = positive ? 1.0f : -1.0f;
  }
}

__global__ void __launch_bounds__(kRotateThreads) take_signs(Cohort cohort, Rotated r, uint32_t together) {
  const uint32_t client = blockIdx.y;
  if (cohort.images[client] == 0) return;
  const uint32_t first = blockIdx.x * (together == 0 ? 1 : together);
  const uint32_t count = r.filters - first < together ? r.filters - first : together;
  const float beta = beta_of(r, client);
  const float* alphas = r.alphas + client * size_t{r.filters} + first;
  const auto from = [&](uint32_t f, uint32_t row, uint32_t column) {
    return r.standard[filter_at(r, client, first + f) + row * r.shape.stride + column];
  };
  const auto put = [&](uint32_t f, uint32_t row, uint32_t column, const float* values) {
    const float alpha = alphas[f];
    for (uint32_t j = 0; j < 4 && column + j < r.shape.columns; ++j) {
      const uint32_t i = row * r.shape.stride + column + j;
      const size_t at = filter_at(r, client, first + f) + i;
      r.rotated[at] = values[j];
      const Blend blend(all(r.standard[at]), all(values[j]), all(r.beta ? r.anchor_standard[at] : 0.0f),
                        alpha, beta);
      put_sign(r, client, first + f, i, blend);
    }
  };
  if (together > 0) {
    rotate<false>(r, client, count, together, from, put);
  } else {
    rotate_large<false>(r, client, first, from, put);
  }
}

__global__ void take_plain_signs(Cohort cohort, Rotated r) {
  const uint32_t client = blockIdx.y;
  const uint32_t f = blockIdx.x;
  if (cohort.images[client] == 0) return;
  const float beta = beta_of(r, client);
  for (uint32_t i = threadIdx.x; i < r.shape.floats(); i += blockDim.x) {
    if (!has_weight(r.shape, i)) continue;
    const size_t at = filter_at(r, client, f) + i;
    const Lanes weight = all(r.standard[at]);
    put_sign(r, client, f, i, Blend(weight, weight, all(r.beta ? r.anchor_standard[at] : 0.0f), 0.0f, beta));
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

struct BlendInputs {
  float weight, rotated, anchor, of_sign;
};

// g, the gradient of what the signs are of, takes the place of the rotated filters, or of nothing.
__global__ void __launch_bounds__(kThreads) blend_backward(Cohort cohort, Rotated r) {
  BITFED_SHARED(double, shared);
  const FilterThreads threads(shared);
  const uint32_t client = blockIdx.y;
  if (cohort.images[client] == 0) return;
  const bool has_filter = threads.filter < r.filters;
  const uint32_t f = has_filter ? threads.filter : r.filters - 1;
  const uint32_t count = has_filter ? r.shape.floats() : 0;
  const size_t at = filter_at(r, client, f);
  const float alpha = r.alphas[client * size_t{r.filters} + f];
  const float beta = beta_of(r, client);
  const Slope slope(r.surrogates[client]);
  float of_alpha = 0;
  float of_beta = 0;
  const auto load = [&](const Walk& w) {
    const float weight = r.standard[at + w.i];
    return BlendInputs{weight, r.rotates ? r.rotated[at + w.i] : weight,
                       r.beta ? r.anchor_standard[at + w.i] : 0.0f,
                       w.has_weight(r.shape) ? sign_gradient_at(r, client, f, w.weight) : 0.0f};
  };
  for_filter(r.shape, count, threads.lane, load, [&](const Walk& w, const BlendInputs& in) {
    const Blend blend(all(in.weight), all(in.rotated), all(in.anchor), alpha, beta);
    const float gradient = in.of_sign * slope.at(blend.blended).v;
    of_alpha = __fmaf_rn(gradient, blend.to_rotated.v, of_alpha);
    of_beta = __fmaf_rn(gradient, blend.to_anchor.v, of_beta);
    r.rotated[at + w.i] = gradient;
  });
  of_alpha = threads.sum(of_alpha);
  of_beta = threads.sum(of_beta);
  if (!has_filter || threads.lane != 0) return;
  if (r.rotates) r.theta_gradient.at(client)[f] = of_alpha * slope_of_absolute_sine(r.theta.at(client)[f]);
  r.pulls[(client * size_t{r.filters} + f) * 2] = of_beta;
}

// The gradient of the standardised weights in the place of g.
__global__ void __launch_bounds__(kRotateThreads)
    rotate_backward(Cohort cohort, Rotated r, uint32_t together) {
  const uint32_t client = blockIdx.y;
  if (cohort.images[client] == 0) return;
  const uint32_t first = blockIdx.x * (together == 0 ? 1 : together);
  const uint32_t count = r.filters - first < together ? r.filters - first : together;
  const float beta = beta_of(r, client);
  const float* alphas = r.alphas + client * size_t{r.filters} + first;
  const auto from = [&](uint32_t f, uint32_t row, uint32_t column) {
    return alphas[f] * r.rotated[filter_at(r, client, first + f) + row * r.shape.stride + column];
  };
  const auto put = [&](uint32_t f, uint32_t row, uint32_t column, const float* values) {
    const float rest = 1 - alphas[f] - beta;
    for (uint32_t j = 0; j < 4 && column + j < r.shape.columns; ++j) {
      float& g = r.rotated[filter_at(r, client, first + f) + row * r.shape.stride + column + j];
      g = rest * g + values[j];
    }
  };
  if (together > 0) {
    rotate<true>(r, client, count, together, from, put);
  } else {
    rotate_large<true>(r, client, first, from, put);
  }
}

struct FuseInputs {
  float gradient, weight;
};

__global__ void __launch_bounds__(kThreads) fuse_backward(Cohort cohort, Rotated r) {
  BITFED_SHARED(double, shared);
  const FilterThreads threads(shared);
  const uint32_t client = blockIdx.y;
  if (cohort.images[client] == 0) return;
  const bool has_filter = threads.filter < r.filters;
  const uint32_t f = has_filter ? threads.filter : r.filters - 1;
  const uint32_t count = has_filter ? r.shape.floats() : 0;
  const size_t at = filter_at(r, client, f);
  const float lambda = lambda_of(r, client);
  const float rest = 1 - 0.0f - beta_of(r, client);
  const auto load = [&](const Walk& w) {
    const float g = r.rotated[at + w.i];
    return FuseInputs{r.rotates ? g : rest * g + 0.0f * g, r.standard[at + w.i]};
  };
  float sum = 0;
  float along = 0;
  for_filter(r.shape, count, threads.lane, load, [&](const Walk& /*w*/, const FuseInputs& in) {
    sum = sum + in.gradient;
    along = __fmaf_rn(in.gradient, in.weight, along);
  });
  sum = threads.sum(sum) / static_cast<float>(r.inputs);
  along = -threads.sum(along) / static_cast<float>(r.inputs);
  const float inverse = r.inverse[client * size_t{r.filters} + f];
  float* to = r.weights_gradient.at(client) + size_t{f} * r.weights_stride;
  const float* local = r.weights.at(client) + size_t{f} * r.weights_stride;
  float of_lambda = 0;
  for_filter(r.shape, count, threads.lane, load, [&](const Walk& w, const FuseInputs& in) {
    const bool inside = w.has_weight(r.shape);
    const float fused = __fmaf_rn(along, in.weight, in.gradient - sum) * inverse * (inside ? 1.0f : 0.0f);
    if (inside) to[w.weight] = lambda * fused;
    if (r.lambda)
      of_lambda = __fmaf_rn(fused, (inside ? local[w.weight] : 0.0f) - r.anchor[at + w.i], of_lambda);
  });
  of_lambda = threads.sum(of_lambda);
  if (has_filter && threads.lane == 0) r.pulls[(client * size_t{r.filters} + f) * 2 + 1] = of_lambda;
}

// The gradients of gamma and lambda, summed over the filters in their order.
__global__ void add_pulls(Cohort cohort, Rotated r) {
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
__global__ void __launch_bounds__(kThreads) set_anchor(Rotated r, uint64_t mask) {
  BITFED_SHARED(double, shared);
  const FilterThreads threads(shared);
  const uint32_t client = blockIdx.y;
  if (!is_masked(mask, client)) return;
  const uint32_t f = threads.filter < r.filters ? threads.filter : r.filters - 1;
  const uint32_t count = threads.filter < r.filters ? r.shape.floats() : 0;
  FusedFilter at(r, client, f);
  at.fuses = false;
  const Standardised by = standardise(r.shape, r.inputs, count, threads, at);
  const size_t first = filter_at(r, client, f);
  for (Walk w(r.shape, threads.lane); w.i < count; w.next(r.shape)) {
    r.anchor[first + w.i] = at(w);
    r.anchor_standard[first + w.i] = standardised(w.has_weight(r.shape), at(w), by);
  }
}

__global__ void fuse(Rotated r, uint64_t mask) {
  const uint32_t client = blockIdx.y;
  const uint32_t f = blockIdx.x;
  if (!is_masked(mask, client)) return;
  const float lambda = lambda_of(r, client);
  for (uint32_t i = threadIdx.x; i < r.shape.floats(); i += blockDim.x) {
    if (!has_weight(r.shape, i)) continue;
    const float fused = fused_at(r, client, f, i, lambda);
    r.weights.at(client)[size_t{f} * r.weights_stride + weight_at(r.shape, i)] = fused;
  }
}

Blocks chain_blocks(const Cohort& cohort, const Rotated& r) {
  return {(r.filters + kThreads / 16 - 1) / (kThreads / 16), cohort.clients};
}

Blocks rotate_blocks(const Cohort& cohort, const Rotated& r) {
  const uint32_t together = std::max(1u, filters_together(r.shape));
  return {(r.filters + together - 1) / together, cohort.clients};
}

size_t rotate_shared(const Rotated& r) {
  const uint32_t together = filters_together(r.shape);
  return together == 0 ? 0 : rotate_bytes(r.shape, together);
}

}  // namespace

bool rotated_fits(const FilterMatrix& shape) {
  return filters_together(shape) > 0;
}

void rotated_set_anchor(const Cohort& cohort, const Rotated& r, uint64_t mask, const Stream& stream) {
  launch(set_anchor, chain_blocks(cohort, r), kThreads, kChainBytes, stream, r, mask);
}

void rotated_fuse(const Cohort& cohort, const Rotated& r, uint64_t mask, const Stream& stream) {
  launch(fuse, Blocks{r.filters, cohort.clients}, kThreads, 0, stream, r, mask);
}

void rotated_forward(const Cohort& cohort, const Rotated& r, const Stream& stream) {
  launch(standardise_all, chain_blocks(cohort, r), kThreads, kChainBytes, stream, cohort, r);
  if (r.rotates) {
    launch(take_signs, rotate_blocks(cohort, r), kRotateThreads, rotate_shared(r), stream, cohort, r,
           filters_together(r.shape));
  } else {
    launch(take_plain_signs, Blocks{r.filters, cohort.clients}, kThreads, 0, stream, cohort, r);
  }
}

void rotated_backward(const Cohort& cohort, const Rotated& r, const Stream& stream) {
  launch(blend_backward, chain_blocks(cohort, r), kThreads, kChainBytes, stream, cohort, r);
  if (r.rotates)
    launch(rotate_backward, rotate_blocks(cohort, r), kRotateThreads, rotate_shared(r), stream, cohort, r,
           filters_together(r.shape));
  launch(fuse_backward, chain_blocks(cohort, r), kThreads, kChainBytes, stream, cohort, r);
  if (r.lambda || r.beta) launch(add_pulls, Blocks{}, 64, 0, stream, cohort, r);
}

}  // namespace bitfed::cuda
