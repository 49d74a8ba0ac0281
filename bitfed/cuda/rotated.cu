// Rotated binary weights, see RotatedWeights. What has sums over a filter takes a block a filter; the
// products with R1 and R2 take a block some filters.

#include "bitfed/cuda/filters.h"

#include <algorithm>

namespace bitfed::cuda {
namespace {

constexpr unsigned kRotateThreads = 288;
constexpr unsigned kTilesOfThread = 2;       // of 8 x 4: four filters of 64 x 72 a block, or eight of 48 x 48
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

__global__ void __launch_bounds__(kFilterThreads) standardise_all(Cohort cohort, Rotated r) {
  BITFED_SHARED(double, shared);
  const uint32_t f = blockIdx.x;
  const uint32_t client = blockIdx.y;
  if (cohort.images[client] == 0) return;
  const FusedFilter at(r, client, f);
  const Standardised by = standardise(r.shape, r.inputs, shared, at);
  float* to = r.standard + filter_at(r, client, f);
#pragma unroll 4
  for (uint32_t i = threadIdx.x; i < r.shape.floats(); i += kFilterThreads)
    to[i] = standardised(has_weight(r.shape, i), at(i), by);
  if (threadIdx.x != 0) return;
  r.alphas[client * size_t{r.filters} + f] = alpha_of(r, client, f);
  r.inverse[client * size_t{r.filters} + f] = by.inverse;
}

// ------------------------------------------------------------------------------------------------ products
// A filter in shared memory, and its tiles.
struct FilterTiles {
  uint32_t rows, columns;  // whole tiles

  BITFED_HOST_DEVICE explicit FilterTiles(const FilterMatrix& s)
      : rows((s.rows + 7) / 8 * 8), columns((s.columns + 3) / 4 * 4) {}
  BITFED_HOST_DEVICE uint32_t floats() const { return rows * columns; }
  BITFED_HOST_DEVICE uint32_t across() const { return columns / 4; }
  BITFED_HOST_DEVICE uint32_t count() const { return rows / 8 * across(); }
};

size_t rotate_bytes(const FilterMatrix& s, uint32_t together) {
  const FilterTiles tiles(s);
  return (size_t{s.rows} * tiles.rows + size_t{s.columns} * tiles.columns +
          size_t{together} * tiles.floats()) *
         sizeof(float);
}

// The filters that a block rotates; 0: none fits.
uint32_t filters_together(const FilterMatrix& s) {
  uint32_t together = std::min(32u, kTilesOfThread * kRotateThreads / FilterTiles(s).count());
  while (together > 1 && rotate_bytes(s, together) > kRotateShared) --together;
  return together > 0 && rotate_bytes(s, together) <= kMaxShared ? together : 0;
}

// sums = a' b of 8 x 4: a is [depth][a_step], b [depth][b_step].
BITFED_FORMULA void multiply_tile(const float* a, uint32_t a_step, const float* b, uint32_t b_step,
                                  uint32_t depth, float (&sums)[8][4]) {
#pragma unroll
  for (auto& row : sums) {
#pragma unroll
    for (float& sum : row) sum = 0;
  }
#pragma unroll 4
  for (uint32_t k = 0; k < depth; ++k) {
    const float4 u = *reinterpret_cast<const float4*>(a + k * a_step);
    const float4 v = *reinterpret_cast<const float4*>(a + k * a_step + 4);
    const float4 w = *reinterpret_cast<const float4*>(b + k * b_step);
    const float x[8] = {u.x, u.y, u.z, u.w, v.x, v.y, v.z, v.w};
    const float y[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) {
#pragma unroll
      for (unsigned j = 0; j < 4; ++j) sums[i][j] = __fmaf_rn(x[i], y[j], sums[i][j]);
    }
  }
}

// From four neighbours of the filters, `from`, to put(filter of the block, row, column, four values of R1' W
// R2, or backward R1 W R2').
template <bool kBackward, typename From, typename Put>
BITFED_FORMULA void rotate(const Rotated& r, uint32_t client, uint32_t count, From from, Put put) {
  BITFED_SHARED(float, shared);
  const FilterMatrix& s = r.shape;
  const FilterTiles tiles(s);
  float* left = shared;                       // left[k][row]: what multiplies row k of the halfway matrix
  float* right = left + s.rows * tiles.rows;  // right[k][column]
  float* filters = right + s.columns * tiles.columns;  // [filter][column][row], then halfway [row][column]
  const float* r1 = r.r1.at(client);
  const float* r2 = r.r2.at(client);
  for (uint32_t i = threadIdx.x; i < s.rows * tiles.rows; i += blockDim.x) {
    // Neighbours in memory by neighbouring threads.
    const uint32_t k = kBackward ? i % s.rows : i / tiles.rows;
    const uint32_t row = kBackward ? i / s.rows : i % tiles.rows;
    left[k * tiles.rows + row] =
        row < s.rows ? (kBackward ? r1[row * r.r1_stride + k] : r1[k * r.r1_stride + row]) : 0.0f;
  }
  for (uint32_t i = threadIdx.x; i < s.columns * tiles.columns; i += blockDim.x) {
    const uint32_t k = kBackward ? i % s.columns : i / tiles.columns;
    const uint32_t column = kBackward ? i / s.columns : i % tiles.columns;
    right[k * tiles.columns + column] =
        column < s.columns ? (kBackward ? r2[column * s.stride + k] : r2[k * s.stride + column]) : 0.0f;
  }
  // Eight rows by neighbouring threads, whose values meet few banks twice.
  const uint32_t across = tiles.across();
  for (uint32_t i = threadIdx.x; i < count * tiles.rows * across; i += blockDim.x) {
    const uint32_t f = i / (tiles.rows * across);
    const uint32_t row = i / 8 / across % (tiles.rows / 8) * 8 + i % 8;
    const uint32_t column = i / 8 % across * 4;
    const float4 four = row < s.rows ? from(f, row, column) : float4{0, 0, 0, 0};
    const float values[4] = {four.x, four.y, four.z, four.w};
    float* to = filters + f * tiles.floats() + column * tiles.rows + row;
#pragma unroll
    for (unsigned j = 0; j < 4; ++j) to[j * tiles.rows] = column + j < s.columns ? values[j] : 0.0f;
  }
  __syncthreads();
  float sums[kTilesOfThread][8][4];
  const auto for_own_tiles = [&](auto work) {
#pragma unroll
    for (unsigned own = 0; own < kTilesOfThread; ++own) {
      const uint32_t tile = threadIdx.x + own * kRotateThreads;
      if (tile >= count * tiles.count()) continue;
      const uint32_t row = tile % tiles.count() / across * 8;
      const uint32_t column = tile % tiles.count() % across * 4;
      work(tile / tiles.count(), row, column, sums[own]);
    }
  };
  for_own_tiles([&](uint32_t f, uint32_t row, uint32_t column, float(&of)[8][4]) {
    multiply_tile(filters + f * tiles.floats() + row, tiles.rows, right + column, tiles.columns, s.columns,
                  of);
  });
  __syncthreads();
  for_own_tiles([&](uint32_t f, uint32_t row, uint32_t column, float(&of)[8][4]) {
    float* to = filters + f * tiles.floats() + row * tiles.columns + column;
#pragma unroll
    for (unsigned i = 0; i < 8; ++i)
      *reinterpret_cast<float4*>(to + i * tiles.columns) = float4{of[i][0], of[i][1], of[i][2], of[i][3]};
  });
  __syncthreads();
  for_own_tiles([&](uint32_t f, uint32_t row, uint32_t column, float(&of)[8][4]) {
    multiply_tile(left + row, tiles.rows, filters + f * tiles.floats() + column, tiles.columns, s.rows, of);
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) {
      if (row + i < s.rows) put(f, row + i, column, of[i]);
    }
  });
}

// The same where shared memory is too small: a block a filter, in the memory of the device.
template <bool kBackward, typename From, typename Put>
BITFED_FORMULA void rotate_large(const Rotated& r, uint32_t client, uint32_t filter, From from, Put put) {
  const FilterMatrix& s = r.shape;
  float* own = r.halfway + filter_at(r, client, filter) * 2;
  float* halfway = own + s.floats();
  const float* r1 = r.r1.at(client);
  const float* r2 = r.r2.at(client);
  for (uint32_t i = 4 * threadIdx.x; i < s.floats(); i += 4 * blockDim.x) {
    const float4 four = from(0u, i / s.stride, i % s.stride);
    const float values[4] = {four.x, four.y, four.z, four.w};
    for (unsigned j = 0; j < 4; ++j) own[i + j] = has_weight(s, i + j) ? values[j] : 0.0f;
  }
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

BITFED_FORMULA float4& four_at(float* values, size_t at) {
  return *reinterpret_cast<float4*>(values + at);
}

__global__ void __launch_bounds__(kRotateThreads, 2) take_signs(Cohort cohort, Rotated r, uint32_t together) {
  const uint32_t client = blockIdx.y;
  if (cohort.images[client] == 0) return;
  const uint32_t first = blockIdx.x * (together == 0 ? 1 : together);
  const uint32_t count = r.filters - first < together ? r.filters - first : together;
  const float beta = beta_of(r, client);
  const float* alphas = r.alphas + client * size_t{r.filters} + first;
  const bool whole_words = r.signs != nullptr && r.shape.columns % 4 == 0;
  const auto place = [&](uint32_t f, uint32_t row, uint32_t column) {
    return filter_at(r, client, first + f) + row * r.shape.stride + column;
  };
  const auto from = [&](uint32_t f, uint32_t row, uint32_t column) {
    return four_at(r.standard, place(f, row, column));
  };
  const auto put = [&](uint32_t f, uint32_t row, uint32_t column, const float* values) {
    const size_t at = place(f, row, column);
    four_at(r.rotated, at) = float4{values[0], values[1], values[2], values[3]};
    const float4 four = four_at(r.standard, at);
    const float standard[4] = {four.x, four.y, four.z, four.w};
    unsigned word = 0;
#pragma unroll
    for (uint32_t j = 0; j < 4; ++j) {
      if (column + j >= r.shape.columns) continue;
      const Blend blend(all(standard[j]), all(values[j]), all(r.beta ? r.anchor_standard[at + j] : 0.0f),
                        alphas[f], beta);
      word |= (blend.blended.v >= 0 ? 0x01u : 0xffu) << (8 * j);
      if (!whole_words) put_sign(r, client, first + f, row * r.shape.stride + column + j, blend);
    }
    if (whole_words)
      *reinterpret_cast<unsigned*>(r.signs + (client * size_t{r.filters} + first + f) * r.inputs +
                                   row * r.shape.columns + column) = word;
  };
  if (together > 0) {
    rotate<false>(r, client, count, from, put);
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

// g, the gradient of what the signs are of, takes the place of the rotated filters, or of nothing.
__global__ void __launch_bounds__(kFilterThreads) blend_backward(Cohort cohort, Rotated r) {
  BITFED_SHARED(double, shared);
  const uint32_t f = blockIdx.x;
  const uint32_t client = blockIdx.y;
  if (cohort.images[client] == 0) return;
  const size_t at = filter_at(r, client, f);
  const float alpha = r.alphas[client * size_t{r.filters} + f];
  const float beta = beta_of(r, client);
  const Slope slope(r.surrogates[client]);
  float* gradients = filter_tile(shared, 0);
  float* to_rotated = filter_tile(shared, 1);
  float* to_anchor = filter_tile(shared, 2);
  float of_alpha = 0;
  float of_beta = 0;
  const auto make = [&](uint32_t index, uint32_t i) {
    const float weight = r.standard[at + index];
    const float rotated = r.rotates ? r.rotated[at + index] : weight;
    const float anchor = r.beta ? r.anchor_standard[at + index] : 0.0f;
    const float of_sign =
        has_weight(r.shape, index) ? sign_gradient_at(r, client, f, weight_at(r.shape, index)) : 0.0f;
    const Blend blend(all(weight), all(rotated), all(anchor), alpha, beta);
    gradients[i] = of_sign * slope.at(blend.blended).v;
    to_rotated[i] = blend.to_rotated.v;
    to_anchor[i] = blend.to_anchor.v;
    r.rotated[at + index] = gradients[i];
  };
  for_chains(r.shape.floats(), make, [&](uint32_t i) {
    of_alpha = __fmaf_rn(gradients[i], to_rotated[i], of_alpha);
    of_beta = __fmaf_rn(gradients[i], to_anchor[i], of_beta);
  });
  of_alpha = sum_of_chains(of_alpha, reinterpret_cast<float*>(shared));
  of_beta = sum_of_chains(of_beta, reinterpret_cast<float*>(shared));
  if (threadIdx.x != 0) return;
  if (r.rotates) r.theta_gradient.at(client)[f] = of_alpha * slope_of_absolute_sine(r.theta.at(client)[f]);
  r.pulls[(client * size_t{r.filters} + f) * 2] = of_beta;
}

// The gradient of the standardised weights in the place of g.
__global__ void __launch_bounds__(kRotateThreads, 2)
    rotate_backward(Cohort cohort, Rotated r, uint32_t together) {
  const uint32_t client = blockIdx.y;
  if (cohort.images[client] == 0) return;
  const uint32_t first = blockIdx.x * (together == 0 ? 1 : together);
  const uint32_t count = r.filters - first < together ? r.filters - first : together;
  const float beta = beta_of(r, client);
  const float* alphas = r.alphas + client * size_t{r.filters} + first;
  const auto g_at = [&](uint32_t f, uint32_t row, uint32_t column) -> float4& {
    return four_at(r.rotated, filter_at(r, client, first + f) + row * r.shape.stride + column);
  };
  const auto from = [&](uint32_t f, uint32_t row, uint32_t column) {
    const float4 g = g_at(f, row, column);
    return float4{alphas[f] * g.x, alphas[f] * g.y, alphas[f] * g.z, alphas[f] * g.w};
  };
  const auto put = [&](uint32_t f, uint32_t row, uint32_t column, const float* values) {
    const float rest = 1 - alphas[f] - beta;
    float4& g = g_at(f, row, column);  // in the padding, 0 as the values are
    g = float4{rest * g.x + values[0], rest * g.y + values[1], rest * g.z + values[2],
               rest * g.w + values[3]};
  };
  if (together > 0) {
    rotate<true>(r, client, count, from, put);
  } else {
    rotate_large<true>(r, client, first, from, put);
  }
}

__global__ void __launch_bounds__(kFilterThreads) fuse_backward(Cohort cohort, Rotated r) {
  BITFED_SHARED(double, shared);
  const uint32_t f = blockIdx.x;
  const uint32_t client = blockIdx.y;
  if (cohort.images[client] == 0) return;
  const size_t at = filter_at(r, client, f);
  const float lambda = lambda_of(r, client);
  const float rest = 1 - 0.0f - beta_of(r, client);
  const auto gradient_at = [&](uint32_t index) {
    const float g = r.rotated[at + index];
    return r.rotates ? g : rest * g + 0.0f * g;
  };
  float* first = filter_tile(shared, 0);
  float* second = filter_tile(shared, 1);
  float sum = 0;
  float along = 0;
  for_chains(
      r.shape.floats(),
      [&](uint32_t index, uint32_t i) {
        first[i] = gradient_at(index);
        second[i] = r.standard[at + index];
      },
      [&](uint32_t i) {
        sum = sum + first[i];
        along = __fmaf_rn(first[i], second[i], along);
      });
  sum = sum_of_chains(sum, reinterpret_cast<float*>(shared)) / static_cast<float>(r.inputs);
  along = -sum_of_chains(along, reinterpret_cast<float*>(shared)) / static_cast<float>(r.inputs);
  const float inverse = r.inverse[client * size_t{r.filters} + f];
  float* to = r.weights_gradient.at(client) + size_t{f} * r.weights_stride;
  const float* local = r.weights.at(client) + size_t{f} * r.weights_stride;
  const auto fused_gradient = [&](uint32_t index) {
    const bool inside = has_weight(r.shape, index);
    const float fused =
        __fmaf_rn(along, r.standard[at + index], gradient_at(index) - sum) * inverse * (inside ? 1.0f : 0.0f);
    if (inside) to[weight_at(r.shape, index)] = lambda * fused;
    return fused;
  };
  if (!r.lambda) {
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < r.shape.floats(); i += kFilterThreads) fused_gradient(i);
    return;
  }
  float of_lambda = 0;
  for_chains(
      r.shape.floats(),
      [&](uint32_t index, uint32_t i) {
        first[i] = fused_gradient(index);
        second[i] =
            (has_weight(r.shape, index) ? local[weight_at(r.shape, index)] : 0.0f) - r.anchor[at + index];
      },
      [&](uint32_t i) { of_lambda = __fmaf_rn(first[i], second[i], of_lambda); });
  of_lambda = sum_of_chains(of_lambda, reinterpret_cast<float*>(shared));
  if (threadIdx.x == 0) r.pulls[(client * size_t{r.filters} + f) * 2 + 1] = of_lambda;
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
__global__ void __launch_bounds__(kFilterThreads) set_anchor(Rotated r, uint64_t mask) {
  BITFED_SHARED(double, shared);
  const uint32_t f = blockIdx.x;
  const uint32_t client = blockIdx.y;
  if (!is_masked(mask, client)) return;
  FusedFilter at(r, client, f);
  at.fuses = false;
  const Standardised by = standardise(r.shape, r.inputs, shared, at);
  const size_t first = filter_at(r, client, f);
  for (uint32_t i = threadIdx.x; i < r.shape.floats(); i += kFilterThreads) {
    r.anchor[first + i] = at(i);
    r.anchor_standard[first + i] = standardised(has_weight(r.shape, i), at(i), by);
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

Blocks filter_blocks(const Cohort& cohort, const Rotated& r) {
  return {r.filters, cohort.clients};
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
  launch(set_anchor, filter_blocks(cohort, r), kFilterThreads, filter_bytes(1), stream, r, mask);
}

void rotated_fuse(const Cohort& cohort, const Rotated& r, uint64_t mask, const Stream& stream) {
  launch(fuse, filter_blocks(cohort, r), kFilterThreads, 0, stream, r, mask);
}

void rotated_forward(const Cohort& cohort, const Rotated& r, const Stream& stream) {
  launch(standardise_all, filter_blocks(cohort, r), kFilterThreads, filter_bytes(1), stream, cohort, r);
  if (r.rotates) {
    launch(take_signs, rotate_blocks(cohort, r), kRotateThreads, rotate_shared(r), stream, cohort, r,
           filters_together(r.shape));
  } else {
    launch(take_plain_signs, filter_blocks(cohort, r), kFilterThreads, 0, stream, cohort, r);
  }
}

void rotated_backward(const Cohort& cohort, const Rotated& r, const Stream& stream) {
  launch(blend_backward, filter_blocks(cohort, r), kFilterThreads, filter_bytes(3), stream, cohort, r);
  if (r.rotates)
    launch(rotate_backward, rotate_blocks(cohort, r), kRotateThreads, rotate_shared(r), stream, cohort, r,
           filters_together(r.shape));
  launch(fuse_backward, filter_blocks(cohort, r), kFilterThreads, filter_bytes(2), stream, cohort, r);
  if (r.lambda || r.beta) launch(add_pulls, Blocks{}, 64, 0, stream, cohort, r);
}

}  // namespace bitfed::cuda
