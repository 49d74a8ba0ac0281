#pragma once

#include "bitfed/cuda/kernels.h"
#include "bitfed/cuda/planes.h"
#include "bitfed/nn/kernels/sine.h"

// What the kernels of rotated weights and of the search for rotations share. Sums over a filter are a warp's;
// products are a block's, and their functions are called by all of its threads.
namespace bitfed::cuda {

constexpr float kTinyDeviation = 1e-12f;  // as in RotatedWeights

BITFED_FORMULA float lambda_of(const Rotated& r, uint32_t client) {
  if (!r.lambda) return 1.0f;
  const float lambda = *r.lambdas.at(client);
  return lambda < 0 ? 0.0f : (1 < lambda ? 1.0f : lambda);
}

// The index of a weight in its filter as a matrix, or none in the padding.
BITFED_FORMULA bool has_weight(const FilterMatrix& shape, uint32_t i) {
  return i % shape.stride < shape.columns;
}
BITFED_FORMULA uint32_t weight_at(const FilterMatrix& shape, uint32_t i) {
  return i / shape.stride * shape.columns + i % shape.stride;
}

BITFED_FORMULA float local_at(const Rotated& r, uint32_t client, uint32_t f, uint32_t i) {
  return has_weight(r.shape, i) ? r.weights.at(client)[size_t{f} * r.weights_stride + weight_at(r.shape, i)]
                                : 0.0f;
}

BITFED_FORMULA size_t filter_at(const Rotated& r, uint32_t client, uint32_t f) {
  return (client * size_t{r.filters} + f) * r.shape.floats();
}

// lambda * local + (1 - lambda) * anchor
BITFED_FORMULA float fused_at(const Rotated& r, uint32_t client, uint32_t f, uint32_t i, float lambda) {
  return __fmaf_rn(local_at(r, client, f, i), lambda, r.anchor[filter_at(r, client, f) + i] * (1 - lambda));
}

constexpr unsigned kFilterThreads = 128;
constexpr unsigned kFiltersAtOnce = kFilterThreads / kWarp;  // of a block that has a filter a warp

// Two neighbouring places in a filter's matrix, the first one even: both are in one row.
struct FilterPair {
  uint32_t at;         // in the matrix with its padding
  uint32_t weight;     // of the first, in the filter without
  bool first, second;  // whether they are weights and not padding

  BITFED_FORMULA FilterPair(const FilterMatrix& s, uint32_t i) : at(i) {
    const uint32_t row = Divisor(s.stride).quotient(i);
    const uint32_t column = i - row * s.stride;
    weight = row * s.columns + column;
    first = column < s.columns;
    second = column + 1 < s.columns;
  }
  BITFED_FORMULA float2 of_weights(const float* filter) const {
    if (second && weight % 2 == 0) return two_at(filter + weight);
    return {first ? filter[weight] : 0.0f, second ? filter[weight + 1] : 0.0f};
  }
  BITFED_FORMULA void put_matrix(float* filter, float2 values) const {
    *reinterpret_cast<float2*>(filter + at) = values;
  }
  BITFED_FORMULA void put_weights(float* filter, float2 values) const {
    if (second && weight % 2 == 0) {
      *reinterpret_cast<float2*>(filter + weight) = values;
      return;
    }
    if (first) filter[weight] = values.x;
    if (second) filter[weight + 1] = values.y;
  }
  BITFED_FORMULA float2 masked(float2 values) const {
    return {values.x * (first ? 1.0f : 0.0f), values.y * (second ? 1.0f : 0.0f)};
  }
};

// work(pair, load(pair)) for all pairs of the warp's filter.
template <typename Load, typename Work>
BITFED_FORMULA void for_pairs(const FilterMatrix& shape, Load load, Work work) {
  const auto pair = [&](size_t i) { return FilterPair(shape, static_cast<uint32_t>(i)); };
  for_loaded<2 * kWarp>(
      2 * lane_of_warp(), shape.floats(), [&](size_t i) { return load(pair(i)); },
      [&](size_t i, const auto& values) { work(pair(i), values); });
}

// Sums over the warp's filter: add(pair, load(pair), sums of the first, sums of the second).
template <unsigned kSums, typename Load, typename Add>
BITFED_FORMULA Sums<kSums> add_up_filter(const FilterMatrix& shape, Load load, Add add) {
  const auto pair = [&](size_t i) { return FilterPair(shape, static_cast<uint32_t>(i)); };
  return add_up<kSums>(
      shape.floats(), [&](size_t i) { return load(pair(i)); },
      [&](size_t i, const auto& values, float* even, float* odd) { add(pair(i), values, even, odd); });
}

struct Standardised {
  float mean, inverse;
};

// The mean and 1 / standard deviation of the warp's filter whose values are `at(pair)`.
template <typename At>
BITFED_FORMULA Standardised standardise(const FilterMatrix& shape, uint32_t inputs, At at) {
  double sum = 0;
  double magnitudes = 0;
  for_pairs(shape, at, [&](const FilterPair& /*pair*/, float2 two) {
    sum = sum + static_cast<double>(two.x);
    magnitudes = magnitudes + fabs(static_cast<double>(two.x));
    sum = sum + static_cast<double>(two.y);
    magnitudes = magnitudes + fabs(static_cast<double>(two.y));
  });
  sum = sum_of_warp(sum);
  magnitudes = sum_of_warp(magnitudes);
  float mean;
  if (!settle_mean(sum, magnitudes, shape.floats(), inputs, &mean)) {
    // Sixteen chains, one of them by two threads with the same result.
    sum = 0;
    const uint32_t chain = lane_of_warp() % 16;
    for (uint32_t i = chain; i < shape.floats(); i += 16) {
      const float2 two = at(FilterPair(shape, i / 2 * 2));
      sum = sum + static_cast<double>(i % 2 == 0 ? two.x : two.y);
    }
#pragma unroll
    for (unsigned half = 8; half > 0; half /= 2) sum = sum + __shfl_xor_sync(~0u, sum, half);
    mean = static_cast<float>(sum / static_cast<double>(inputs));
  }
  const auto add_squares = [&](const FilterPair& pair, float2 two, float* even, float* odd) {
    const float2 away = pair.masked({two.x - mean, two.y - mean});
    even[0] = __fmaf_rn(away.x, away.x, even[0]);
    odd[0] = __fmaf_rn(away.y, away.y, odd[0]);
  };
  const Sums<1> squares = add_up_filter<1>(shape, at, add_squares);
  return {mean, 1 / (sqrtf(squares.of[0] / static_cast<float>(inputs)) + kTinyDeviation)};
}

BITFED_FORMULA float2 standardised(const FilterPair& pair, float2 values, const Standardised& by) {
  return pair.masked({(values.x - by.mean) * by.inverse, (values.y - by.mean) * by.inverse});
}

// What standardise() takes of a filter: local weights, fused with the anchor's where there is a lambda.
struct FusedFilter {
  const float* local;
  const float* anchor;
  float lambda;
  bool fuses;

  BITFED_FORMULA FusedFilter(const Rotated& r, uint32_t client, uint32_t f)
      : local(r.weights.at(client) + size_t{f} * r.weights_stride),
        anchor(r.anchor + filter_at(r, client, f)),
        lambda(lambda_of(r, client)),
        fuses(r.lambda) {}
  BITFED_FORMULA float2 operator()(const FilterPair& pair) const {
    const float2 own = pair.of_weights(local);
    if (!fuses) return own;
    const float2 other = two_at(anchor + pair.at);
    return {__fmaf_rn(own.x, lambda, other.x * (1 - lambda)),
            __fmaf_rn(own.y, lambda, other.y * (1 - lambda))};
  }
};

// The filter of a warp, in a grid of filters, layers and clients.
BITFED_FORMULA uint32_t filter_of_warp() {
  return blockIdx.x * kFiltersAtOnce + threadIdx.x / kWarp;
}
constexpr size_t warp_blocks(size_t filters) {
  return (filters + kFiltersAtOnce - 1) / kFiltersAtOnce;
}

// Fixed point, see FilterRotation.
constexpr float kOfRotation = 16384;
constexpr float kMaxShort = 32767;

BITFED_FORMULA float max_times_rotation(uint32_t depth) {
  const float whole = floorf(2147483000.0f / (kOfRotation * sqrtf(static_cast<float>(depth))));
  return whole < kMaxShort ? whole : kMaxShort;
}
BITFED_FORMULA float factor_to(float max, float largest) {
  return largest == 0 ? 1 : max / largest;
}
BITFED_FORMULA int to_short(float x) {
  return static_cast<int16_t>(__float2int_rn(x));
}
BITFED_FORMULA unsigned larger_bits(unsigned found, float value) {
  const unsigned bits = __float_as_uint(value) & 0x7fffffffu;
  return bits > found ? bits : found;
}

// Rotated::rotations, of a client and direction: R2, then R1.
BITFED_HOST_DEVICE inline size_t right_bytes(const FilterMatrix& s) {
  return 2 * plane_bytes(s.columns, s.columns);
}
BITFED_HOST_DEVICE inline size_t left_bytes(const FilterMatrix& s) {
  return 2 * plane_bytes(s.rows, s.rows);
}
BITFED_HOST_DEVICE inline size_t rotation_bytes(const FilterMatrix& s) {
  return right_bytes(s) + left_bytes(s);
}
BITFED_FORMULA int8_t* rotations_of(const Rotated& r, uint32_t client, bool back) {
  return r.rotations + (size_t{client} * 2 + (back ? 1 : 0)) * rotation_bytes(r.shape);
}

// ------------------------------------------------------------------------------------------------ products
// put(row, column, sum over k < depth of a(row, k) * b(k, column)) for all rows and columns, a multiple of
// four; every sum a chain of fused multiply-adds by depth. a4(row, k) gives four rows' elements, b4(k,
// column) four columns'.
template <typename A, typename B, typename Put>
BITFED_FORMULA void multiply_small(uint32_t rows, uint32_t columns, uint32_t depth, A a4, B b4, Put put) {
  const uint32_t across = columns / 4;
  const uint32_t tiles = (rows + 3) / 4 * across;
  for (uint32_t tile = threadIdx.x; tile < tiles; tile += blockDim.x) {
    const uint32_t row = tile / across * 4;
    const uint32_t column = tile % across * 4;
    float sums[4][4] = {};
#pragma unroll 4
    for (uint32_t k = 0; k < depth; ++k) {
      const float4 left = a4(row, k);
      const float4 right = b4(k, column);
      const float a[4] = {left.x, left.y, left.z, left.w};
      const float b[4] = {right.x, right.y, right.z, right.w};
#pragma unroll
      for (unsigned r = 0; r < 4; ++r) {
#pragma unroll
        for (unsigned c = 0; c < 4; ++c) sums[r][c] = __fmaf_rn(a[r], b[c], sums[r][c]);
      }
    }
    for (unsigned r = 0; r < 4; ++r) {
      if (row + r < rows) put(row + r, column, float4{sums[r][0], sums[r][1], sums[r][2], sums[r][3]});
    }
  }
}

// Four elements of a matrix: one of each of four rows, rows beyond the last as the last; or neighbours of a
// row.
BITFED_FORMULA float4 down(const float* matrix, uint32_t stride, uint32_t rows, uint32_t row,
                           uint32_t column) {
  const auto at = [&](uint32_t r) { return matrix[size_t{r < rows ? r : rows - 1} * stride + column]; };
  return {at(row), at(row + 1), at(row + 2), at(row + 3)};
}
BITFED_FORMULA float4 across(const float* matrix, uint32_t stride, uint32_t row, uint32_t column) {
  return *reinterpret_cast<const float4*>(matrix + size_t{row} * stride + column);
}

BITFED_FORMULA bool is_masked(uint64_t mask, uint32_t client) {
  return (mask >> client & 1) != 0;
}

constexpr size_t kMaxShared = 200 << 10;

}  // namespace bitfed::cuda
