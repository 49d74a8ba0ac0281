// The search for rotations, see RotationSearch, for all layers of all clients at once: blocks are numbered by
// run of filters, layer and client. Products are exact sums of integers; a run's sum is scaled and added to
// the sum of the runs before it, as the CPU does.

#include "bitfed/cuda/filters.h"

#include <algorithm>

namespace bitfed::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr float kOfRotation = 16384;
constexpr float kMaxShort = 32767;
constexpr uint32_t kMaxIterations = 60;
constexpr double kOrthogonal = 1e-5;
constexpr size_t kRunShorts = 12000;
constexpr size_t kChainBytes = 2048;  // for sums of threads
constexpr uint32_t kMomentRun = 256;

BITFED_FORMULA float max_times_rotation(uint32_t depth) {
  const float max = 2147483000.0f / (kOfRotation * sqrtf(static_cast<float>(depth)));
  const float whole = floorf(max);
  return whole < kMaxShort ? whole : kMaxShort;
}
BITFED_FORMULA float factor_to(float max, float largest) {
  return largest == 0 ? 1 : max / largest;
}
BITFED_FORMULA float halfway_factor(const Search& s, uint32_t client) {
  const float longest = __uint_as_float(s.longest[2 * client]);
  return factor_to(max_times_rotation(s.layer.shape.columns), 1.01f * longest);
}
BITFED_FORMULA float rotated_factor(const Search& s, uint32_t client) {
  return factor_to(kMaxShort, 1.01f * __uint_as_float(s.longest[2 * client + 1]));
}
BITFED_FORMULA int to_short(float x) {
  return static_cast<int16_t>(__float2int_rn(x));
}

__global__ void __launch_bounds__(kFilterThreads) standardise_filters(SearchPlan plan, uint64_t mask) {
  BITFED_SHARED(double, shared);
  const Rotated& r = plan.searches[blockIdx.y].layer;
  const uint32_t f = blockIdx.x;
  const uint32_t client = blockIdx.z;
  if (!is_masked(mask, client) || f >= r.filters) return;
  const FusedFilter at(r, client, f);
  const Standardised by = standardise(r.shape, r.inputs, shared, at);
  float* to = r.standard + filter_at(r, client, f);  // free until the next step
  for (uint32_t i = threadIdx.x; i < r.shape.floats(); i += kFilterThreads)
    to[i] = standardised(has_weight(r.shape, i), at(i), by);
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
  for (uint32_t i = threadIdx.x; i < shape.floats(); i += blockDim.x)
    s.weights[at + i] = static_cast<int16_t>(to_short(filter[i] * factor));
  if (threadIdx.x == 0) s.weight_factors[client * size_t{r.filters} + f] = factor;
  __syncthreads();

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
      for (uint32_t from = 0; from < shape.rows; from += kMomentRun) {
        float sum_part = 0;
        float square_part = 0;
        for (uint32_t row = from; row < from + kMomentRun && row < shape.rows; ++row) {
          const float difference = filter[size_t{row} * shape.stride + c] - pivot;
          sum_part = sum_part + difference;
          square_part = __fmaf_rn(difference, difference, square_part);
        }
        sum = sum + sum_part;
        square = square + square_part;
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

// The factor of a rotation's fixed point, by its longest column.
BITFED_FORMULA float factor_of_rotation(const float* rotation, uint32_t size, uint32_t stride,
                                        double* shared) {
  double longest = 0;
  for (uint32_t c = threadIdx.x; c < size; c += blockDim.x) {
    double squares = 0;
    for (uint32_t row = 0; row < size; ++row) {
      const double value = rotation[size_t{row} * stride + c];
      squares = squares + value * value;
    }
    longest = longest < squares ? squares : longest;
  }
  __syncthreads();
  shared[threadIdx.x] = longest;
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half && shared[threadIdx.x] < shared[threadIdx.x + half])
      shared[threadIdx.x] = shared[threadIdx.x + half];
  }
  __syncthreads();
  const float factor = factor_to(kOfRotation, static_cast<float>(sqrt(shared[0])));
  __syncthreads();
  return factor;
}

// A run's memory, as integers with rows and columns rounded up to four: what the products read is
// [depth][row] and [depth][column], so that a thread takes four at a time.
struct RunMemory {
  uint32_t rows, columns;
  double* chains;
  int* rotation;
  int* filter;
  int* product;
  int* inner;
};

BITFED_HOST_DEVICE uint32_t up_to_four(uint32_t n) {
  return (n + 3) / 4 * 4;
}

BITFED_HOST_DEVICE size_t run_ints(const FilterMatrix& shape) {
  const size_t rows = up_to_four(shape.rows);
  const size_t columns = up_to_four(shape.columns);
  return 2 * rows * rows + 2 * rows * columns;
}

BITFED_FORMULA RunMemory run_memory(const Search& s, uint32_t client) {
  BITFED_SHARED(double, shared);
  RunMemory m;
  m.rows = up_to_four(s.layer.shape.rows);
  m.columns = up_to_four(s.layer.shape.columns);
  m.chains = shared;
  m.rotation =
      s.scratch == nullptr
          ? reinterpret_cast<int*>(shared) + kChainBytes / sizeof(int)
          : reinterpret_cast<int*>(s.scratch + (client * size_t{s.runs()} + blockIdx.x) * s.scratch_step);
  m.filter = m.rotation + m.rows * m.rows;
  m.product = m.filter + m.rows * m.columns;
  m.inner = m.product + m.rows * m.columns;
  return m;
}

struct FourInts {
  int v[4];
};

BITFED_FORMULA FourInts four_ints(const int* p) {
  const uint4 four = *reinterpret_cast<const uint4*>(p);
  return {{static_cast<int>(four.x), static_cast<int>(four.y), static_cast<int>(four.z),
           static_cast<int>(four.w)}};
}

// put(row, column, sums of 4 x 4) of a' b: a is [depth][rows], b [depth][columns], as change(b's four) has
// it.
template <typename Change, typename Put>
BITFED_FORMULA void multiply_whole(const int* a, uint32_t rows, const int* b, uint32_t columns,
                                   uint32_t depth, Change change, Put put) {
  const uint32_t across_tiles = columns / 4;
  for (uint32_t tile = threadIdx.x; tile < rows / 4 * across_tiles; tile += blockDim.x) {
    const uint32_t row = tile / across_tiles * 4;
    const uint32_t column = tile % across_tiles * 4;
    int sums[4][4] = {};
#pragma unroll 4
    for (uint32_t k = 0; k < depth; ++k) {
      const FourInts left = four_ints(a + k * rows + row);
      const FourInts right = change(four_ints(b + k * columns + column));
#pragma unroll
      for (unsigned i = 0; i < 4; ++i) {
#pragma unroll
        for (unsigned j = 0; j < 4; ++j) sums[i][j] += left.v[i] * right.v[j];
      }
    }
    put(row, column, sums);
  }
}

BITFED_FORMULA FourInts unchanged(FourInts x) {
  return x;
}
BITFED_FORMULA FourInts signs_of(FourInts x) {
  for (int& v : x.v) v = v < 0 ? -1 : 1;
  return x;
}

// A rotation in fixed point, [row][column] as it is.
BITFED_FORMULA void take_rotation(const float* rotation, uint32_t size, uint32_t stride, uint32_t step,
                                  float factor, int* to) {
  for (uint32_t i = threadIdx.x; i < size * step; i += blockDim.x) {
    const uint32_t column = i % step;
    to[i] = column < size ? to_short(rotation[size_t{i / step} * stride + column] * factor) : 0;
  }
}

// halfway = R1' W of a run's filters; and, with `sums`, the sum of (R1' W)' B.
__global__ void __launch_bounds__(kThreads) run_left(SearchPlan plan, uint64_t mask, bool sums) {
  const Search& s = plan.searches[blockIdx.y];
  const Rotated& r = s.layer;
  const uint32_t client = blockIdx.z;
  if (!is_masked(mask, client) || blockIdx.x >= s.runs()) return;
  const FilterMatrix shape = r.shape;
  const RunMemory m = run_memory(s, client);
  const float* r1 = r.r1.at(client);
  take_rotation(r1, shape.rows, r.r1_stride, m.rows,
                factor_of_rotation(r1, shape.rows, r.r1_stride, m.chains), m.rotation);
  for (uint32_t i = threadIdx.x; i < m.columns * m.columns; i += blockDim.x) m.inner[i] = 0;
  const float factor = halfway_factor(s, client);
  const uint32_t first = blockIdx.x * s.run;
  const uint32_t last = first + s.run < r.filters ? first + s.run : r.filters;
  const auto load = [&](const auto* from) {
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < shape.rows * m.columns; i += blockDim.x) {
      const uint32_t column = i % m.columns;
      m.filter[i] = column < shape.columns ? from[i / m.columns * shape.stride + column] : 0;
    }
    __syncthreads();
  };
  for (uint32_t f = first; f < last; ++f) {
    const size_t at = filter_at(r, client, f);
    load(s.weights + at);
    const float own = factor / (s.weight_factors[client * size_t{r.filters} + f] * kOfRotation);
    multiply_whole(m.rotation, m.rows, m.filter, m.columns, shape.rows, unchanged,
                   [&](uint32_t row, uint32_t column, const int(&of)[4][4]) {
                     for (unsigned i = 0; i < 4 && row + i < shape.rows; ++i) {
                       for (unsigned j = 0; j < 4; ++j) {
                         const int value = to_short(static_cast<float>(of[i][j]) * own);
                         m.product[(row + i) * m.columns + column + j] = value;
                         if (column + j < shape.columns)
                           s.halfway[at + (row + i) * shape.stride + column + j] =
                               static_cast<int16_t>(value);
                       }
                     }
                   });
    if (!sums) continue;
    load(s.signs + at);
    multiply_whole(m.product, m.columns, m.filter, m.columns, shape.rows, unchanged,
                   [&](uint32_t row, uint32_t column, const int(&of)[4][4]) {
                     for (unsigned i = 0; i < 4; ++i) {
                       for (unsigned j = 0; j < 4; ++j)
                         m.inner[(row + i) * m.columns + column + j] += of[i][j];
                     }
                   });
  }
  if (!sums) return;
  __syncthreads();
  float* to = s.partial + (client * size_t{s.runs()} + blockIdx.x) * shape.rows * shape.rows;
  for (uint32_t i = threadIdx.x; i < shape.columns * shape.columns; i += blockDim.x)
    to[i] = static_cast<float>(m.inner[i / shape.columns * m.columns + i % shape.columns]) * (1 / factor);
}

// rotated = R1' W R2 of a run's filters, their signs B, and the sum of rotated B'.
__global__ void __launch_bounds__(kThreads) run_right(SearchPlan plan, uint64_t mask) {
  const Search& s = plan.searches[blockIdx.y];
  const Rotated& r = s.layer;
  const uint32_t client = blockIdx.z;
  if (!is_masked(mask, client) || blockIdx.x >= s.runs()) return;
  const FilterMatrix shape = r.shape;
  const RunMemory m = run_memory(s, client);
  const float* r2 = r.r2.at(client);
  take_rotation(r2, shape.columns, shape.stride, m.columns,
                factor_of_rotation(r2, shape.columns, shape.stride, m.chains), m.rotation);
  for (uint32_t i = threadIdx.x; i < m.rows * m.rows; i += blockDim.x) m.inner[i] = 0;
  const float factor = rotated_factor(s, client);
  const float own = factor / (halfway_factor(s, client) * kOfRotation);
  const uint32_t first = blockIdx.x * s.run;
  const uint32_t last = first + s.run < r.filters ? first + s.run : r.filters;
  for (uint32_t f = first; f < last; ++f) {
    const size_t at = filter_at(r, client, f);
    __syncthreads();
    // Transposed: [column][row].
    for (uint32_t i = threadIdx.x; i < m.rows * shape.columns; i += blockDim.x) {
      const uint32_t row = i / shape.columns;
      const uint32_t column = i % shape.columns;
      m.filter[column * m.rows + row] = row < shape.rows ? s.halfway[at + row * shape.stride + column] : 0;
    }
    __syncthreads();
    multiply_whole(m.filter, m.rows, m.rotation, m.columns, shape.columns, unchanged,
                   [&](uint32_t row, uint32_t column, const int(&of)[4][4]) {
                     for (unsigned i = 0; i < 4; ++i) {
                       for (unsigned j = 0; j < 4; ++j) {
                         const int value = to_short(static_cast<float>(of[i][j]) * own);
                         m.product[(column + j) * m.rows + row + i] = value;
                         if (row + i < shape.rows && column + j < shape.columns)
                           s.signs[at + (row + i) * shape.stride + column + j] =
                               static_cast<int8_t>(value < 0 ? -1 : 1);
                       }
                     }
                   });
    __syncthreads();
    multiply_whole(m.product, m.rows, m.product, m.rows, shape.columns, signs_of,
                   [&](uint32_t row, uint32_t column, const int(&of)[4][4]) {
                     for (unsigned i = 0; i < 4; ++i) {
                       for (unsigned j = 0; j < 4; ++j) m.inner[(row + i) * m.rows + column + j] += of[i][j];
                     }
                   });
  }
  __syncthreads();
  float* to = s.partial + (client * size_t{s.runs()} + blockIdx.x) * shape.rows * shape.rows;
  for (uint32_t i = threadIdx.x; i < shape.rows * shape.rows; i += blockDim.x)
    to[i] = static_cast<float>(m.inner[i / shape.rows * m.rows + i % shape.rows]) * (1 / factor);
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
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] = combine(shared[threadIdx.x], shared[threadIdx.x + half]);
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

// A new R1 or R2 from the sums of the runs.
__global__ void __launch_bounds__(kThreads) take_polar(SearchPlan plan, uint64_t mask, bool of_rows) {
  BITFED_SHARED(double, shared);
  const Search& s = plan.searches[blockIdx.y];
  const Rotated& r = s.layer;
  const uint32_t client = blockIdx.z;
  if (!is_masked(mask, client)) return;
  const Square m = of_rows ? Square{r.shape.rows, r.r1_stride} : Square{r.shape.columns, r.shape.stride};
  float* x = s.scratch == nullptr ? reinterpret_cast<float*>(shared) + kChainBytes / sizeof(float)
                                  : s.scratch + client * size_t{s.runs()} * s.scratch_step;
  float* gram = x + m.floats();
  float* next = gram + m.floats();
  const size_t step = size_t{r.shape.rows} * r.shape.rows;
  const float* partial = s.partial + client * size_t{s.runs()} * step;
  for (uint32_t i = threadIdx.x; i < m.floats(); i += blockDim.x) {
    const uint32_t row = i / m.stride;
    const uint32_t column = i % m.stride;
    float sum = 0;
    if (column < m.size) {
      sum = partial[row * m.size + column];
#pragma unroll 8
      for (uint32_t run = 1; run < s.runs(); ++run) sum = sum + partial[run * step + row * m.size + column];
    }
    (of_rows ? gram : x)[i] = sum;
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

__global__ void __launch_bounds__(kThreads) make_orthogonal(SearchPlan plan, uint64_t mask) {
  BITFED_SHARED(double, shared);
  const Search& s = plan.searches[blockIdx.y];
  const Rotated& r = s.layer;
  const uint32_t client = blockIdx.z;
  if (!is_masked(mask, client)) return;
  for (unsigned of_rows = 0; of_rows < 2; ++of_rows) {
    const Square m =
        of_rows != 0 ? Square{r.shape.rows, r.r1_stride} : Square{r.shape.columns, r.shape.stride};
    float* x = s.scratch == nullptr ? reinterpret_cast<float*>(shared) + kChainBytes / sizeof(float)
                                    : s.scratch + client * size_t{s.runs()} * s.scratch_step;
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

bool fits(const Rotated& r) {
  return kChainBytes + std::max(run_ints(r.shape), polar_floats(r)) * sizeof(float) <= kMaxShared;
}

}  // namespace

Search make_search(const Rotated& layer) {
  Search s;
  s.layer = layer;
  const size_t filter_shorts = (size_t{layer.shape.rows} + 1) / 2 * 2 * layer.shape.stride;
  s.run = static_cast<uint32_t>(std::max<size_t>(1, kRunShorts / filter_shorts));
  if (!fits(layer)) s.scratch_step = std::max(run_ints(layer.shape), polar_floats(layer));
  return s;
}

SearchPlan plan_search(const std::vector<Search>& searches) {
  SearchPlan plan;
  plan.count = static_cast<uint32_t>(searches.size());
  for (const Search& s : searches) {
    plan.max_runs = std::max(plan.max_runs, s.runs());
    plan.max_filters = std::max(plan.max_filters, s.layer.filters);
    if (s.scratch_step > 0) continue;
    plan.run_shared = std::max(plan.run_shared, run_ints(s.layer.shape) * sizeof(int));
    plan.polar_shared = std::max(plan.polar_shared, polar_floats(s.layer) * sizeof(float));
  }
  plan.run_shared += kChainBytes;
  plan.polar_shared += kChainBytes;
  return plan;
}

void make_rotations_orthogonal(const Cohort& cohort, const SearchPlan& plan, uint64_t mask,
                               const Stream& stream) {
  launch(make_orthogonal, Blocks{1, plan.count, cohort.clients}, kThreads, plan.polar_shared, stream, plan,
         mask);
}

void search_rotations(const Cohort& cohort, const SearchPlan& plan, uint32_t iterations, uint64_t mask,
                      const Stream& stream) {
  const Blocks runs{plan.max_runs, plan.count, cohort.clients};
  const Blocks layers{1, plan.count, cohort.clients};
  launch(clear_longest, Blocks{plan.count}, 128, 0, stream, plan, mask);
  launch(standardise_filters, Blocks{plan.max_filters, plan.count, cohort.clients}, kFilterThreads,
         filter_bytes(1), stream, plan, mask);
  launch(take_filters, Blocks{plan.max_filters, plan.count, cohort.clients}, kThreads, kChainBytes, stream,
         plan, mask);
  launch(run_left, runs, kThreads, plan.run_shared, stream, plan, mask, false);
  for (uint32_t i = 0; i < iterations; ++i) {
    launch(run_right, runs, kThreads, plan.run_shared, stream, plan, mask);
    launch(take_polar, layers, kThreads, plan.polar_shared, stream, plan, mask, true);
    launch(run_left, runs, kThreads, plan.run_shared, stream, plan, mask, true);
    launch(take_polar, layers, kThreads, plan.polar_shared, stream, plan, mask, false);
  }
}

}  // namespace bitfed::cuda
