#pragma once

#include "bitfed/cuda/kernels.h"
#include "bitfed/cuda/lanes.h"
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

// A thread's way through a filter: every sixteenth value, without divisions.
struct Walk {
  uint32_t i, column, weight;

  BITFED_FORMULA Walk(const FilterMatrix& shape, uint32_t lane) : i(lane), column(lane), weight(lane) {
    wrap(shape);
  }
  BITFED_FORMULA void next(const FilterMatrix& shape) {
    i += 16;
    column += 16;
    weight += 16;
    wrap(shape);
  }
  BITFED_FORMULA bool has_weight(const FilterMatrix& shape) const { return column < shape.columns; }

 private:
  BITFED_FORMULA void wrap(const FilterMatrix& shape) {
    if (column < shape.stride) return;
    column -= shape.stride;
    weight -= shape.stride - shape.columns;
  }
};

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

// Sixteen threads take a filter: thread `lane` has the values lane, lane + 16 …, each sum's chain. `sixteen`:
// shared memory for each sixteen, as many doubles.
struct FilterThreads {
  uint32_t filter, lane;
  double* sixteen;

  BITFED_FORMULA explicit FilterThreads(double* shared)
      : filter(blockIdx.x * (blockDim.x / 16) + threadIdx.x / 16),
        lane(threadIdx.x % 16),
        sixteen(shared + threadIdx.x / 16 * 16) {}
  template <typename Number>
  BITFED_FORMULA Number sum(Number value) const {
    return sum_of_lanes(value, reinterpret_cast<Number*>(sixteen), lane);
  }
};

struct Standardised {
  float mean, inverse;
};

// take(walk, load(walk)) along a thread's way, in sequence. Many loads at a time hide their latency: 32, or
// as many as fit 64 registers.
template <typename Load, typename Take>
BITFED_FORMULA void for_filter(const FilterMatrix& shape, uint32_t count, uint32_t lane, Load load,
                               Take take) {
  using Value = decltype(load(Walk(shape, lane)));
  constexpr unsigned kAhead = sizeof(Value) > 8 ? 256 / sizeof(Value) : 32;
  for (Walk w(shape, lane); w.i < count;) {
    Walk ahead = w;
    Value values[kAhead];
#pragma unroll
    for (unsigned k = 0; k < kAhead; ++k) {
      values[k] = ahead.i < count ? load(ahead) : Value();
      ahead.next(shape);
    }
#pragma unroll
    for (unsigned k = 0; k < kAhead; ++k) {
      if (w.i < count) take(w, values[k]);
      w.next(shape);
    }
  }
}

// The mean and 1 / standard deviation of a filter whose values are `at(walk)`. All threads of the block come
// here; those that have no filter with a count of 0.
template <typename At>
BITFED_FORMULA Standardised standardise(const FilterMatrix& shape, uint32_t inputs, uint32_t count,
                                        const FilterThreads& threads, At at) {
  double sum = 0;
  for_filter(shape, count, threads.lane, at,
             [&](const Walk& /*w*/, float value) { sum = sum + static_cast<double>(value); });
  const float mean = static_cast<float>(threads.sum(sum) / static_cast<double>(inputs));
  float squares = 0;
  for_filter(shape, count, threads.lane, at, [&](const Walk& w, float value) {
    const float difference = (value - mean) * (w.has_weight(shape) ? 1.0f : 0.0f);
    squares = __fmaf_rn(difference, difference, squares);
  });
  const float variance = threads.sum(squares) / static_cast<float>(inputs);
  return {mean, 1 / (sqrtf(variance) + kTinyDeviation)};
}

BITFED_FORMULA float standardised(bool has_weight, float value, const Standardised& by) {
  return (value - by.mean) * by.inverse * (has_weight ? 1.0f : 0.0f);
}

// What standardise() takes of a filter: local weights, fused with the anchor's where there is a lambda.
struct FusedFilter {
  const float* local;
  const float* anchor;
  const FilterMatrix& shape;
  float lambda;
  bool fuses;

  BITFED_FORMULA FusedFilter(const Rotated& r, uint32_t client, uint32_t f)
      : local(r.weights.at(client) + size_t{f} * r.weights_stride),
        anchor(r.anchor + filter_at(r, client, f)),
        shape(r.shape),
        lambda(lambda_of(r, client)),
        fuses(r.lambda) {}
  BITFED_FORMULA float operator()(const Walk& w) const {
    const float own = w.has_weight(shape) ? local[w.weight] : 0.0f;
    return fuses ? __fmaf_rn(own, lambda, anchor[w.i] * (1 - lambda)) : own;
  }
};

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
