// The search for rotations, see RotationSearch, for all layers of all clients at once: blocks are numbered by
// run of filters, layer and client. Products are exact sums of integers; a run's sum is scaled and added to
// the sum of the runs before it, as the CPU does.

#include "bitfed/cuda/filters.h"

#include <algorithm>

namespace bitfed::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kPolarThreads = 384;  // a tile of 4 x 4 each of 64 x 80
constexpr uint32_t kMaxIterations = 60;
constexpr double kOrthogonal = 1e-5;
constexpr size_t kRunShorts = 12000;
constexpr size_t kChainBytes = kPolarThreads * sizeof(double);  // for sums of threads

BITFED_FORMULA float halfway_factor(const Search& s, uint32_t client) {
  const float longest = __uint_as_float(s.longest[2 * client]);
  return factor_to(max_times_rotation(s.layer.shape.columns), 1.01f * longest);
}
BITFED_FORMULA float rotated_factor(const Search& s, uint32_t client) {
  return factor_to(kMaxShort, 1.01f * __uint_as_float(s.longest[2 * client + 1]));
}
// Of a filter: W transposed, R1' W, and signs transposed.
BITFED_HOST_DEVICE size_t weights_bytes(const FilterMatrix& shape) {
  return 2 * plane_bytes(shape.columns, shape.rows);
}
BITFED_HOST_DEVICE size_t halfway_bytes(const FilterMatrix& shape) {
  return 2 * plane_bytes(shape.rows, shape.columns);
}
BITFED_HOST_DEVICE size_t signs_bytes(const FilterMatrix& shape) {
  return plane_bytes(shape.columns, shape.rows);
}
BITFED_FORMULA size_t index_of(const Search& s, uint32_t client, uint32_t f) {
  return client * size_t{s.layer.filters} + f;
}

__global__ void __launch_bounds__(kFilterThreads) standardise_filters(SearchPlan plan, uint64_t mask) {
  const Rotated& r = plan.searches[blockIdx.y].layer;
  const uint32_t f = filter_of_warp();
  const uint32_t client = blockIdx.z;
  if (!is_masked(mask, client) || f >= r.filters) return;
  const FusedFilter at(r, client, f);
  const Standardised by = standardise(r.shape, r.inputs, at);
  float* to = r.standard + filter_at(r, client, f);  // free until the next step
  for_pairs(r.shape, at,
            [&](const FilterPair& pair, float2 two) { pair.put_matrix(to, standardised(pair, two, by)); });
}

// Takes the standardised filters as integers; a block per filter.
__global__ void __launch_bounds__(kThreads) take_filters(SearchPlan plan, uint64_t mask) {
  BITFED_SHARED(double, chains);
  const Search& s = plan.searches[blockIdx.y];
  const Rotated& r = s.layer;
  const uint32_t client = blockIdx.z;
  const uint32_t f = blockIdx.x;
  if (!is_masked(mask, client) || f >= r.filters) return;
  const FilterMatrix shape = r.shape;
  const size_t at = filter_at(r, client, f);
  const float* filter = r.standard + at;
  auto* words = reinterpret_cast<unsigned*>(chains);
  unsigned found = 0;
  for (uint32_t i = threadIdx.x; i < shape.floats(); i += blockDim.x) {
    const unsigned bits = __float_as_uint(filter[i]) & 0x7fffffffu;
    found = bits > found ? bits : found;
  }
  words[threadIdx.x] = found;
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half && words[threadIdx.x + half] > words[threadIdx.x])
      words[threadIdx.x] = words[threadIdx.x + half];
  }
  __syncthreads();
  const float largest = largest_found(words[0]);
  const float factor = factor_to(max_times_rotation(shape.rows), largest);
  int8_t* weights = s.weights + index_of(s, client, f) * weights_bytes(shape);
  int8_t* staged = s.scratch == nullptr ? reinterpret_cast<int8_t*>(chains) + kChainBytes
                                        : weights;  // before it is written
  const Planes planes = planes_at(staged, shape.columns, shape.rows);
  const Divisor stride(shape.stride);
  for (uint32_t i = threadIdx.x; i < shape.floats(); i += blockDim.x) {
    const uint32_t row = stride.quotient(i);
    const uint32_t column = i - row * shape.stride;
    if (column < shape.columns) put_whole(planes, column * planes.step + row, to_short(filter[i] * factor));
  }
  if (threadIdx.x == 0) s.weight_factors[index_of(s, client, f)] = factor;
  __syncthreads();
  if (staged != weights) copy_planes(staged, weights_bytes(shape), weights);

  // The squared lengths of the columns, from their moments.
  auto* squares = reinterpret_cast<float*>(chains);
  float all_squares = 0 * largest;
  float max_squares = all_squares;
  for (uint32_t first = 0; first < shape.columns; first += kThreads) {
    const uint32_t c = first + threadIdx.x;
    if (c < shape.columns) {
      const float pivot = filter[c];
      float sum = 0;
      float square = 0;
      for (uint32_t from = 0; from < shape.rows; from += kNormRun * kNormRunsTogether) {
        float sum_together = 0;
        float square_together = 0;
        for (uint32_t run = from; run < from + kNormRun * kNormRunsTogether && run < shape.rows;
             run += kNormRun) {
          float sum_part = 0;
          float square_part = 0;
          for (uint32_t row = run; row < run + kNormRun && row < shape.rows; ++row) {
            const float difference = filter[size_t{row} * shape.stride + c] - pivot;
            sum_part = sum_part + difference;
            square_part = __fmaf_rn(difference, difference, square_part);
          }
          sum_together = sum_together + sum_part;
          square_together = square_together + square_part;
        }
        sum = sum + sum_together;
        square = square + square_together;
      }
      const float count = static_cast<float>(shape.rows);
      const float away = sum / count;
      const float mean = pivot + away;
      const float variance = larger(all(square / count - away * away), all(0.0f)).v;
      squares[threadIdx.x] = count * (variance + mean * mean);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      for (uint32_t i = 0; i < kThreads && first + i < shape.columns; ++i) {
        all_squares = all_squares + squares[i];
        max_squares = max_squares < squares[i] ? squares[i] : max_squares;
      }
    }
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  atomicMax(s.longest + 2 * client, __float_as_uint(sqrtf(max_squares)) & 0x7fffffffu);
  atomicMax(s.longest + 2 * client + 1, __float_as_uint(sqrtf(all_squares)) & 0x7fffffffu);
}

// Of a run's sums: pairs of integers meet all banks.
BITFED_HOST_DEVICE uint32_t inner_step(uint32_t size) {
  return plane_rows(size) + 8;
}

BITFED_HOST_DEVICE size_t run_left_bytes(const FilterMatrix& shape) {
  return left_bytes(shape) + 2 * weights_bytes(shape) + halfway_bytes(shape) + signs_bytes(shape) +
         size_t{shape.columns} * inner_step(shape.columns) * sizeof(int);
}
BITFED_HOST_DEVICE size_t run_right_bytes(const FilterMatrix& shape) {
  return right_bytes(shape) + 2 * halfway_bytes(shape) + plane_bytes(shape.rows, shape.columns) +
         signs_bytes(shape) + size_t{shape.rows} * inner_step(shape.rows) * sizeof(int);
}
BITFED_HOST_DEVICE size_t run_bytes(const FilterMatrix& shape) {
  const size_t left = run_left_bytes(shape);
  const size_t right = run_right_bytes(shape);
  return left > right ? left : right;
}

BITFED_FORMULA int8_t* run_memory(const Search& s, uint32_t client) {
  BITFED_SHARED(int8_t, shared);
  return s.scratch == nullptr ? shared
                              : s.scratch + (client * size_t{s.runs()} + blockIdx.x) * s.scratch_step;
}

// inner += a * b' of a square matrix.
BITFED_FORMULA void add_inner(const Planes& a, const Planes& b, uint32_t size, uint32_t depth, bool in_shared,
                              int* inner) {
  multiply_planes(a, size, b, size, depth, in_shared,
                  [&](uint32_t row, uint32_t column, int first, int second) {
                    if (row >= size || column >= size) return;
                    int* to = inner + row * inner_step(size) + column;
                    to[0] += first;
                    to[1] += second;
                  });
}

// The sum of a run, as its share of `partial`.
BITFED_FORMULA void put_inner(const Search& s, uint32_t client, const int* inner, uint32_t size,
                              float factor) {
  __syncthreads();
  const uint32_t rows = s.layer.shape.rows;
  float* to = s.partial + (client * size_t{s.runs()} + blockIdx.x) * rows * rows;
  const Divisor across(size);
  for (uint32_t i = threadIdx.x; i < size * size; i += blockDim.x) {
    const uint32_t row = across.quotient(i);
    to[i] = static_cast<float>(inner[row * inner_step(size) + i - row * size]) * (1 / factor);
  }
}

// halfway = R1' W of a run's filters; and, with `sums`, the sum of (R1' W)' B.
__global__ void __launch_bounds__(kThreads, 2) run_left(SearchPlan plan, uint64_t mask, bool sums) {
  const Search& s = plan.searches[blockIdx.y];
  const Rotated& r = s.layer;
  const uint32_t client = blockIdx.z;
  if (!is_masked(mask, client) || blockIdx.x >= s.runs()) return;
  const FilterMatrix shape = r.shape;
  const bool in_shared = s.scratch == nullptr;
  int8_t* memory = run_memory(s, client);
  const Planes left = planes_at(memory, shape.rows, shape.rows);
  memory += left_bytes(shape);
  const Planes weights = planes_at(memory, shape.columns, shape.rows);
  memory += weights_bytes(shape);
  const Planes halfway = planes_at(memory, shape.rows, shape.columns);
  memory += halfway_bytes(shape);
  const Planes transposed = planes_at(memory, shape.columns, shape.rows);  // R1' W
  memory += weights_bytes(shape);
  const Planes signs{memory, nullptr, plane_step(shape.rows)};
  memory += signs_bytes(shape);
  auto* inner = reinterpret_cast<int*>(memory);
  copy_planes(rotations_of(r, client, false) + right_bytes(shape), left_bytes(shape), left.high);
  for (uint32_t i = threadIdx.x; i < shape.columns * inner_step(shape.columns); i += blockDim.x) inner[i] = 0;
  const float factor = halfway_factor(s, client);
  const uint32_t first = blockIdx.x * s.run;
  const uint32_t last = first + s.run < r.filters ? first + s.run : r.filters;
  for (uint32_t f = first; f < last; ++f) {
    const size_t at = index_of(s, client, f);
    __syncthreads();
    copy_planes(s.weights + at * weights_bytes(shape), weights_bytes(shape), weights.high);
    if (sums) copy_planes(s.signs + at * signs_bytes(shape), signs_bytes(shape), signs.high);
    __syncthreads();
    const float own = factor / (s.weight_factors[at] * kOfRotation);
    multiply_planes(left, shape.rows, weights, shape.columns, shape.rows, in_shared,
                    [&](uint32_t row, uint32_t column, int one, int two) {
                      if (row >= shape.rows || column >= shape.columns) return;
                      const int of_one = to_short(static_cast<float>(one) * own);
                      const int of_two =
                          column + 1 < shape.columns ? to_short(static_cast<float>(two) * own) : 0;
                      put_whole_pair(halfway, row * halfway.step + column, of_one, of_two);
                      if (!sums) return;
                      put_whole(transposed, column * transposed.step + row, of_one);
                      if (column + 1 < shape.columns)
                        put_whole(transposed, (column + 1) * transposed.step + row, of_two);
                    });
    __syncthreads();
    copy_planes(halfway.high, halfway_bytes(shape), s.halfway + at * halfway_bytes(shape));
    if (sums) add_inner(transposed, signs, shape.columns, shape.rows, in_shared, inner);
  }
  if (sums) put_inner(s, client, inner, shape.columns, factor);
}

// rotated = R1' W R2 of a run's filters, their signs B, and the sum of rotated B'.
__global__ void __launch_bounds__(kThreads, 2) run_right(SearchPlan plan, uint64_t mask) {
  const Search& s = plan.searches[blockIdx.y];
  const Rotated& r = s.layer;
  const uint32_t client = blockIdx.z;
  if (!is_masked(mask, client) || blockIdx.x >= s.runs()) return;
  const FilterMatrix shape = r.shape;
  const bool in_shared = s.scratch == nullptr;
  int8_t* memory = run_memory(s, client);
  const Planes right = planes_at(memory, shape.columns, shape.columns);
  memory += right_bytes(shape);
  const Planes halfway = planes_at(memory, shape.rows, shape.columns);
  memory += halfway_bytes(shape);
  const Planes rotated = planes_at(memory, shape.rows, shape.columns);
  memory += halfway_bytes(shape);
  const Planes signs{memory, nullptr, plane_step(shape.columns)};
  int8_t* transposed = memory + plane_bytes(shape.rows, shape.columns);  // the signs
  const uint32_t transposed_step = plane_step(shape.rows);
  auto* inner = reinterpret_cast<int*>(transposed + signs_bytes(shape));
  copy_planes(rotations_of(r, client, false), right_bytes(shape), right.high);
  for (uint32_t i = threadIdx.x; i < shape.rows * inner_step(shape.rows); i += blockDim.x) inner[i] = 0;
  auto* words = reinterpret_cast<unsigned*>(signs.high);
  const size_t all = (plane_bytes(shape.rows, shape.columns) + signs_bytes(shape)) / sizeof(unsigned);
  for (size_t i = threadIdx.x; i < all; i += blockDim.x) words[i] = 0;
  const float factor = rotated_factor(s, client);
  const float own = factor / (halfway_factor(s, client) * kOfRotation);
  const uint32_t first = blockIdx.x * s.run;
  const uint32_t last = first + s.run < r.filters ? first + s.run : r.filters;
  for (uint32_t f = first; f < last; ++f) {
    const size_t at = index_of(s, client, f);
    __syncthreads();
    copy_planes(s.halfway + at * halfway_bytes(shape), halfway_bytes(shape), halfway.high);
    __syncthreads();
    multiply_planes(halfway, shape.rows, right, shape.columns, shape.columns, in_shared,
                    [&](uint32_t row, uint32_t column, int one, int two) {
                      if (row >= shape.rows || column >= shape.columns) return;
                      const bool pair = column + 1 < shape.columns;
                      const int of_one = to_short(static_cast<float>(one) * own);
                      const int of_two = pair ? to_short(static_cast<float>(two) * own) : 0;
                      put_whole_pair(rotated, row * rotated.step + column, of_one, of_two);
                      const int sign_of_one = of_one < 0 ? -1 : 1;
                      const int sign_of_two = pair ? (of_two < 0 ? -1 : 1) : 0;
                      put_byte_pair(signs.high + row * signs.step + column,
                                    static_cast<unsigned>(sign_of_one), static_cast<unsigned>(sign_of_two));
                      transposed[column * transposed_step + row] = static_cast<int8_t>(sign_of_one);
                      if (pair)
                        transposed[(column + 1) * transposed_step + row] = static_cast<int8_t>(sign_of_two);
                    });
    __syncthreads();
    copy_planes(transposed, signs_bytes(shape), s.signs + at * signs_bytes(shape));
    add_inner(rotated, signs, shape.rows, shape.columns, in_shared, inner);
  }
  put_inner(s, client, inner, shape.rows, factor);
}

// The sums of the runs in sequence, in the place of the first one's.
__global__ void __launch_bounds__(kThreads) add_runs(SearchPlan plan, uint64_t mask, bool of_rows) {
  const Search& s = plan.searches[blockIdx.y];
  const uint32_t client = blockIdx.z;
  if (!is_masked(mask, client)) return;
  const size_t step = size_t{s.layer.shape.rows} * s.layer.shape.rows;
  const uint32_t size = of_rows ? s.layer.shape.rows : s.layer.shape.columns;
  float* partial = s.partial + client * size_t{s.runs()} * step;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < size * size; i += gridDim.x * kThreads) {
    float sum = partial[i];
#pragma unroll 16
    for (uint32_t run = 1; run < s.runs(); ++run) sum = sum + partial[run * step + i];
    partial[i] = sum;
  }
}

// Square matrices of one block, with rows `stride` apart.
struct Square {
  uint32_t size, stride;

  BITFED_HOST_DEVICE size_t floats() const { return size_t{size} * stride; }
};

template <bool kTransposed>
BITFED_FORMULA void multiply_square(const Square& m, const float* a, const float* b, float* c) {
  __syncthreads();
  multiply_small(
      m.size, m.stride, m.size,
      [&](uint32_t row, uint32_t k) {
        return kTransposed ? across(a, m.stride, k, row) : down(a, m.stride, m.size, row, k);
      },
      [&](uint32_t k, uint32_t column) { return across(b, m.stride, k, column); },
      [&](uint32_t row, uint32_t column, float4 v) {
        *reinterpret_cast<float4*>(c + size_t{row} * m.stride + column) = v;
      });
  __syncthreads();
}

// By all threads; the order does not matter.
template <typename Number, typename Combine>
BITFED_FORMULA Number reduce(Number value, Number* shared, Combine combine) {
  __syncthreads();
  shared[threadIdx.x] = value;
  for (unsigned half = 256; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half && threadIdx.x + half < blockDim.x)
      shared[threadIdx.x] = combine(shared[threadIdx.x], shared[threadIdx.x + half]);
  }
  __syncthreads();
  const Number result = shared[0];
  __syncthreads();
  return result;
}

// The polar factor of `x`, see polar_factor(); three matrices of memory, padding columns 0. Returns which one
// has it.
BITFED_FORMULA float* polar_factor(const Square& m, float* x, float* gram, float* next, double* shared) {
  const auto larger_of = [](double a, double b) { return a < b ? b : a; };
  double row_sum = 0;
  double column_sum = 0;
  for (uint32_t i = threadIdx.x; i < m.size; i += blockDim.x) {
    double of_row = 0;
    double of_column = 0;
    for (uint32_t k = 0; k < m.size; ++k) {
      of_row = of_row + fabs(static_cast<double>(x[size_t{i} * m.stride + k]));
      of_column = of_column + fabs(static_cast<double>(x[size_t{k} * m.stride + i]));
    }
    row_sum = larger_of(row_sum, of_row);
    column_sum = larger_of(column_sum, of_column);
  }
  row_sum = reduce(row_sum, shared, larger_of);
  column_sum = reduce(column_sum, shared, larger_of);
  const double norm = sqrt(row_sum * column_sum);
  for (uint32_t i = threadIdx.x; i < m.floats(); i += blockDim.x) {
    const bool padding = i % m.stride >= m.size;
    if (norm > 0) {
      x[i] = padding ? 0.0f : static_cast<float>(static_cast<double>(x[i]) / norm);
    } else {
      x[i] = i / m.stride == i % m.stride ? 1.0f : 0.0f;
    }
  }
  if (!(norm > 0)) {
    __syncthreads();
    return x;
  }
  for (uint32_t iteration = 0; iteration < kMaxIterations; ++iteration) {
    multiply_square<true>(m, x, x, gram);
    double error = 0;
    for (uint32_t i = threadIdx.x; i < m.floats(); i += blockDim.x) {
      if (i % m.stride >= m.size) continue;
      const float off = gram[i] - (i / m.stride == i % m.stride ? 1.0f : 0.0f);
      error = error + static_cast<double>(off) * off;
    }
    error = reduce(error, shared, [](double a, double b) { return a + b; });
    constexpr double kLimit = kOrthogonal * kOrthogonal;
    double mean = error / static_cast<double>(m.size);
    // Another order of the sum differs in its last digits; so near to the limit the CPU's order decides.
    if (mean > kLimit * (1 - 1e-9) && mean < kLimit * (1 + 1e-9)) {
      double in_order = 0;
      if (threadIdx.x == 0) {
        for (uint32_t r = 0; r < m.size; ++r) {
          for (uint32_t c = 0; c < m.size; ++c) {
            const float off = gram[size_t{r} * m.stride + c] - (r == c ? 1.0f : 0.0f);
            in_order = in_order + static_cast<double>(off) * off;
          }
        }
      }
      mean = reduce(in_order, shared, [](double a, double b) { return a + b; }) / static_cast<double>(m.size);
    }
    if (mean < kLimit) break;
    for (uint32_t i = threadIdx.x; i < m.floats(); i += blockDim.x) {
      if (i % m.stride < m.size) gram[i] = (i / m.stride == i % m.stride ? 1.5f : 0.0f) - 0.5f * gram[i];
    }
    multiply_square<false>(m, x, gram, next);
    float* const swapped = x;
    x = next;
    next = swapped;
  }
  return x;
}

BITFED_FORMULA float* polar_memory(const Search& s, uint32_t client, double* shared) {
  return s.scratch == nullptr
             ? reinterpret_cast<float*>(shared) + kChainBytes / sizeof(float)
             : reinterpret_cast<float*>(s.scratch + client * size_t{s.runs()} * s.scratch_step);
}

// A new R1 or R2 from the sums of the runs.
__global__ void __launch_bounds__(kPolarThreads) take_polar(SearchPlan plan, uint64_t mask, bool of_rows) {
  BITFED_SHARED(double, shared);
  const Search& s = plan.searches[blockIdx.y];
  const Rotated& r = s.layer;
  const uint32_t client = blockIdx.z;
  if (!is_masked(mask, client)) return;
  const Square m = of_rows ? Square{r.shape.rows, r.r1_stride} : Square{r.shape.columns, r.shape.stride};
  float* x = polar_memory(s, client, shared);
  float* gram = x + m.floats();
  float* next = gram + m.floats();
  const size_t step = size_t{r.shape.rows} * r.shape.rows;
  const float* partial = s.partial + client * size_t{s.runs()} * step;
  for (uint32_t i = threadIdx.x; i < m.floats(); i += blockDim.x) {
    const uint32_t row = i / m.stride;
    const uint32_t column = i % m.stride;
    (of_rows ? gram : x)[i] = column < m.size ? partial[row * m.size + column] : 0.0f;
  }
  float* rotation = of_rows ? r.r1.at(client) : r.r2.at(client);
  if (of_rows) {
    for (uint32_t i = threadIdx.x; i < m.floats(); i += blockDim.x) next[i] = rotation[i];
    multiply_square<false>(m, next, gram, x);
  }
  __syncthreads();
  const float* found = polar_factor(m, x, gram, next, shared);
  for (uint32_t i = threadIdx.x; i < m.floats(); i += blockDim.x) rotation[i] = found[i];
}

__global__ void __launch_bounds__(kPolarThreads) make_orthogonal(SearchPlan plan, uint64_t mask) {
  BITFED_SHARED(double, shared);
  const Search& s = plan.searches[blockIdx.y];
  const Rotated& r = s.layer;
  const uint32_t client = blockIdx.z;
  if (!is_masked(mask, client)) return;
  for (unsigned of_rows = 0; of_rows < 2; ++of_rows) {
    const Square m =
        of_rows != 0 ? Square{r.shape.rows, r.r1_stride} : Square{r.shape.columns, r.shape.stride};
    float* x = polar_memory(s, client, shared);
    float* rotation = of_rows != 0 ? r.r1.at(client) : r.r2.at(client);
    for (uint32_t i = threadIdx.x; i < m.floats(); i += blockDim.x) x[i] = rotation[i];
    __syncthreads();
    const float* found = polar_factor(m, x, x + m.floats(), x + 2 * m.floats(), shared);
    for (uint32_t i = threadIdx.x; i < m.floats(); i += blockDim.x) rotation[i] = found[i];
    __syncthreads();
  }
}

__global__ void clear_longest(SearchPlan plan, uint64_t mask) {
  const Search& s = plan.searches[blockIdx.x];
  const uint32_t client = threadIdx.x / 2;
  if (client < 64 && is_masked(mask, client)) s.longest[threadIdx.x] = 0;
}

size_t polar_floats(const Rotated& r) {
  return 3 * size_t{r.shape.rows} * r.r1_stride;
}

size_t memory_of(const Rotated& r) {
  return std::max(run_bytes(r.shape), kChainBytes + polar_floats(r) * sizeof(float));
}

}  // namespace

Search make_search(const Rotated& layer) {
  Search s;
  s.layer = layer;
  const size_t filter_shorts = (size_t{layer.shape.rows} + 1) / 2 * 2 * layer.shape.stride;
  s.run = static_cast<uint32_t>(std::max<size_t>(1, kRunShorts / filter_shorts));
  if (memory_of(layer) > kMaxShared) s.scratch_step = memory_of(layer);
  return s;
}

size_t search_weights_bytes(const Search& s) {
  return weights_bytes(s.layer.shape);
}
size_t search_halfway_bytes(const Search& s) {
  return halfway_bytes(s.layer.shape);
}
size_t search_signs_bytes(const Search& s) {
  return signs_bytes(s.layer.shape);
}

SearchPlan plan_search(const std::vector<Search>& searches) {
  SearchPlan plan;
  plan.count = static_cast<uint32_t>(searches.size());
  for (const Search& s : searches) {
    plan.max_runs = std::max(plan.max_runs, s.runs());
    plan.max_filters = std::max(plan.max_filters, s.layer.filters);
    if (s.scratch_step > 0) continue;
    plan.filter_shared = std::max(plan.filter_shared, weights_bytes(s.layer.shape));
    plan.run_shared = std::max(plan.run_shared, run_bytes(s.layer.shape));
    plan.polar_shared = std::max(plan.polar_shared, polar_floats(s.layer) * sizeof(float));
  }
  plan.filter_shared += kChainBytes;
  plan.polar_shared += kChainBytes;
  return plan;
}

void make_rotations_orthogonal(const Cohort& cohort, const SearchPlan& plan, uint64_t mask,
                               const Stream& stream) {
  launch(make_orthogonal, Blocks{1, plan.count, cohort.clients}, kPolarThreads, plan.polar_shared, stream,
         plan, mask);
}

void search_rotations(const Cohort& cohort, const SearchPlan& plan, const RotatedPlan& rotated,
                      uint32_t iterations, uint64_t mask, const Stream& stream) {
  const Blocks runs{plan.max_runs, plan.count, cohort.clients};
  const auto improve = [&](bool of_rows) {
    launch(add_runs, Blocks{16, plan.count, cohort.clients}, kThreads, 0, stream, plan, mask, of_rows);
    launch(take_polar, Blocks{1, plan.count, cohort.clients}, kPolarThreads, plan.polar_shared, stream, plan,
           mask, of_rows);
    take_rotations(cohort, rotated, mask, stream);
  };
  launch(clear_longest, Blocks{plan.count}, 128, 0, stream, plan, mask);
  launch(standardise_filters, Blocks{warp_blocks(plan.max_filters), plan.count, cohort.clients},
         kFilterThreads, 0, stream, plan, mask);
  launch(take_filters, Blocks{plan.max_filters, plan.count, cohort.clients}, kThreads, plan.filter_shared,
         stream, plan, mask);
  take_rotations(cohort, rotated, mask, stream);
  launch(run_left, runs, kThreads, plan.run_shared, stream, plan, mask, false);
  for (uint32_t i = 0; i < iterations; ++i) {
    launch(run_right, runs, kThreads, plan.run_shared, stream, plan, mask);
    improve(true);
    launch(run_left, runs, kThreads, plan.run_shared, stream, plan, mask, true);
    improve(false);
  }
}

}  // namespace bitfed::cuda
