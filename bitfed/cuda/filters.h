#pragma once

#include "bitfed/cuda/kernels.h"
#include "bitfed/cuda/planes.h"
#include "bitfed/nn/kernels/sine.h"

// What the kernels of rotated weights and of the search for rotations share. A block works on one filter at a
// time; the functions are called by all of its threads.
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
constexpr uint32_t kFilterTile = 2048;  // values of a filter that are added up at a time

// The memory of a block that adds up a filter: sums of the chains, then tiles of values.
constexpr size_t filter_bytes(unsigned tiles) {
  return 32 * sizeof(double) + tiles * kFilterTile * sizeof(float);
}
BITFED_FORMULA float* filter_tile(double* shared, unsigned tile) {
  return reinterpret_cast<float*>(shared + 32) + tile * kFilterTile;
}

// A place in a filter's matrix; a thread's are kFilterThreads apart, found without a division.
struct FilterPlace {
  uint32_t at, row, column;

  BITFED_FORMULA explicit FilterPlace(const FilterMatrix& s)
      : at(threadIdx.x),
        row(threadIdx.x / s.stride),
        column(threadIdx.x % s.stride),
        shape_(s),
        rows_(kFilterThreads / s.stride),
        columns_(kFilterThreads % s.stride) {}
  BITFED_FORMULA void advance() {
    at += kFilterThreads;
    row += rows_;
    column += columns_;
    if (column < shape_.stride) return;
    column -= shape_.stride;
    ++row;
  }
  BITFED_FORMULA bool has_weight() const { return column < shape_.columns; }
  BITFED_FORMULA uint32_t weight() const { return row * shape_.columns + column; }

 private:
  const FilterMatrix& shape_;
  uint32_t rows_, columns_;
};

// Sums over a filter keep the CPU's order, sixteen chains. All threads of the block compute what is added,
// make(place in the filter, place in the tiles); sixteen of them add it, take(place), in sequence.
template <typename Make, typename Take>
BITFED_FORMULA void for_chains(const FilterMatrix& shape, Make make, Take take) {
  FilterPlace place(shape);
  for (uint32_t first = 0; first < shape.floats(); first += kFilterTile) {
    const uint32_t values = shape.floats() - first < kFilterTile ? shape.floats() - first : kFilterTile;
    __syncthreads();
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < values; i += kFilterThreads, place.advance()) make(place, i);
    __syncthreads();
    if (threadIdx.x >= 16) continue;
#pragma unroll 16
    for (uint32_t i = threadIdx.x; i < values; i += 16) take(i);
  }
}

// By all threads of the block, kFilterThreads.
template <typename Number, typename Combine>
BITFED_FORMULA Number combine_of_filter(Number value, Number* shared, Combine combine) {
  __syncthreads();
  shared[threadIdx.x] = value;
  for (unsigned half = kFilterThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] = combine(shared[threadIdx.x], shared[threadIdx.x + half]);
  }
  __syncthreads();
  return shared[0];
}

struct Standardised {
  float mean, inverse;
};

// The mean and 1 / standard deviation of a filter whose values are `at(place)`; one tile of memory.
template <typename At>
BITFED_FORMULA Standardised standardise(const FilterMatrix& shape, uint32_t inputs, double* shared, At at) {
  float* tile = filter_tile(shared, 0);
  double sum = 0;
  double magnitudes = 0;
#pragma unroll 4
  for (FilterPlace place(shape); place.at < shape.floats(); place.advance()) {
    const double value = at(place);
    sum = sum + value;
    magnitudes = magnitudes + fabs(value);
  }
  const auto add = [](double a, double b) { return a + b; };
  sum = combine_of_filter(sum, reinterpret_cast<double*>(tile), add);
  magnitudes = combine_of_filter(magnitudes, reinterpret_cast<double*>(tile), add);
  float mean;
  if (!settle_mean(sum, magnitudes, shape.floats(), inputs, &mean)) {
    sum = 0;
    for_chains(
        shape, [&](const FilterPlace& place, uint32_t i) { tile[i] = at(place); },
        [&](uint32_t i) { sum = sum + static_cast<double>(tile[i]); });
    mean = static_cast<float>(sum_of_chains(sum, shared) / static_cast<double>(inputs));
  }
  float squares = 0;
  for_chains(
      shape,
      [&](const FilterPlace& place, uint32_t i) {
        tile[i] = (at(place) - mean) * (place.has_weight() ? 1.0f : 0.0f);
      },
      [&](uint32_t i) { squares = __fmaf_rn(tile[i], tile[i], squares); });
  const float variance =
      sum_of_chains(squares, reinterpret_cast<float*>(shared)) / static_cast<float>(inputs);
  return {mean, 1 / (sqrtf(variance) + kTinyDeviation)};
}

BITFED_FORMULA float standardised(bool has_weight, float value, const Standardised& by) {
  return (value - by.mean) * by.inverse * (has_weight ? 1.0f : 0.0f);
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
  BITFED_FORMULA float operator()(const FilterPlace& place) const {
    const float own = place.has_weight() ? local[place.weight()] : 0.0f;
    return fuses ? __fmaf_rn(own, lambda, anchor[place.at] * (1 - lambda)) : own;
  }
};

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
