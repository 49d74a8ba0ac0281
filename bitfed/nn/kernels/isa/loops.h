// The loops of all units. A unit defines Lanes (16 floats) and the operations on it, then includes this file
// inside its own anonymous namespace: the loops are written once and compiled for every instruction set, with
// no code shared between the objects. No contraction: a fused multiply-add is where fma() is written.
//
// Lanes: load(p), store(p, x), stream(p, x) (non-temporal), all(f), + - * /, fma(a, b, c) = a * b + c,
// root(x), larger(a, b), smaller(a, b), where_at_least(a, b, x, y) = a >= b ? x : y, add_exponent(x,
// shifted), largest_of(x), sum_of(x) by halves, nonzeros_of(x) (a bit each), list_nonzeros_of(x, offsets,
// values, found) (see NonzeroLists; returns their number), where_below(draws, bound, x, y) = draw < bound ? x
// : y; kColumnBlocks (1, 2 or 4). Words (kWords of 64 bits): low_products(x, factor) of their low halves,
// store_words(p, x, y) (x[0], y[0], x[1] …). Pairs
// (16 pairs of 16-bit integers, or 16 sums of 32 bits): no_sums(), load_sums(p), store_sums(p, sums),
// load_pairs(p), store_pairs(p, x), all_pairs(p) (the one pair at p), paired(p, q), signs_of(x) (0 counts as
// +1), dot(sums, a, b) = sums + a.first * b.first + a.second * b.second, floats_of(sums),
// transpose_four(from, columns, to, to_step): as transpose_signs, for the first columns of four rows; returns
// the number of columns done. Doubles (16 sums): no_doubles(), add(sums, x), sum_of(sums) by halves.
// store_rounded(p, x), store_rounded(p, even, odd): to 16 bits, to the nearest integer, ties to even.

#define BITFED_FORMULA inline
#include "bitfed/nn/kernels/isa/formulas.h"

// A tile of c in registers: all of its sums advance together.
template <int kRows, int kVectors>
inline void tile(const Product& p, size_t row, size_t column) {
  Lanes sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) sums[r][v] = all(0.0f);
  }
  // An address for every four rows, of which a processor makes the four: sixteen of them would not fit its
  // registers.
  constexpr int kQuads = (kRows + 3) / 4;
  const float* quads[kQuads];
#pragma GCC unroll 16
  for (int q = 0; q < kQuads; ++q) quads[q] = p.a + (row + 4 * q) * p.a_row_step;
  const size_t step = p.a_row_step;
  size_t three_steps = 3 * step;
  asm("" : "+r"(three_steps));  // not to be taken apart
  const float* b = p.b + column;
  for (size_t k = 0; k < p.depth; ++k, b += p.b_stride) {
    Lanes line[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) line[v] = load(b + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Lanes value = all(quads[r / 4][r % 4 == 3 ? three_steps : r % 4 * step]);
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) sums[r][v] = fma(value, line[v], sums[r][v]);
    }
#pragma GCC unroll 16
    for (int q = 0; q < kQuads; ++q) quads[q] += p.a_depth_step;
  }
  float* c = p.c + row * p.c_stride + column;
  const Lanes down = all(-p.descent);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r, c += p.c_stride) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      float* at = c + v * kLanes;
      store(at, p.descent == 0 ? sums[r][v] : fma(down, sums[r][v], load(at)));
    }
  }
}

template <int kRows, int kVectors>
inline void strip(const Product& p, size_t column) {
  size_t row = 0;
  for (; row + kRows <= p.rows; row += kRows) tile<kRows, kVectors>(p, row, column);
  if constexpr (kRows > 8) {
    for (; row + 8 <= p.rows; row += 8) tile<8, kVectors>(p, row, column);
  }
  if constexpr (kRows > 4) {
    for (; row + 4 <= p.rows; row += 4) tile<4, kVectors>(p, row, column);
  }
  for (; row + 2 <= p.rows; row += 2) tile<2, kVectors>(p, row, column);
  if (row < p.rows) tile<1, kVectors>(p, row, column);
}

void multiply(const Product& p) {
  size_t column = 0;
  if constexpr (kWideVectors > 2) {
    for (; column + kWideVectors * kLanes <= p.columns; column += kWideVectors * kLanes)
      strip<kWideRows, kWideVectors>(p, column);
    if (column + 3 * kLanes == p.columns) return strip<8, 3>(p, column);
  }
  for (; column + 2 * kLanes <= p.columns; column += 2 * kLanes) strip<kPairRows, 2>(p, column);
  if (column < p.columns) strip<kSingleRows, 1>(p, column);
}

template <int kRows, int kVectors, bool kContiguous>
inline void gathered_tile(const GatheredProduct& p, size_t row, size_t column) {
  Lanes sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v)
      sums[r][v] = p.adds ? load(p.c + (row + r) * p.c_stride + column + v * kLanes) : all(0.0f);
  }
  for (size_t segment = 0; segment < p.segments; ++segment) {
    const float* base = p.a + segment * p.a_segment_step;
    const float* b = p.b + segment * p.depth * p.columns + column;
    const float* starts[kRows];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) starts[r] = base + p.offsets[row + r];
    for (size_t k = 0; k < p.depth; ++k, b += p.columns) {
      const size_t at = kContiguous ? k : p.depth_offsets[k];
      Lanes line[kVectors];
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) line[v] = load(b + v * kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const Lanes value = all(starts[r][at]);
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) sums[r][v] = fma(value, line[v], sums[r][v]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) store(p.c + (row + r) * p.c_stride + column + v * kLanes, sums[r][v]);
  }
}

// Of products that are not plain: their tiles of more rows would make the device's program 8 KB larger.
constexpr int kOtherSingleRows = kSingleRows < 8 ? kSingleRows : 8;

template <int kRows, int kVectors, bool kContiguous>
inline void gathered_strip(const GatheredProduct& p, size_t column) {
  size_t row = 0;
  for (; row + kRows <= p.rows; row += kRows) gathered_tile<kRows, kVectors, kContiguous>(p, row, column);
  if constexpr (kRows > 4) {
    for (; row + 4 <= p.rows; row += 4) gathered_tile<4, kVectors, kContiguous>(p, row, column);
  }
  for (; row + 2 <= p.rows; row += 2) gathered_tile<2, kVectors, kContiguous>(p, row, column);
  if (row < p.rows) gathered_tile<1, kVectors, kContiguous>(p, row, column);
}

template <bool kContiguous>
inline void multiply_gathered_as(const GatheredProduct& p) {
  size_t column = 0;
  if constexpr (kWideVectors > 2) {
    for (; column + kWideVectors * kLanes <= p.columns; column += kWideVectors * kLanes)
      gathered_strip<kGatheredWideRows, kWideVectors, kContiguous>(p, column);
    if (column + 3 * kLanes == p.columns) return gathered_strip<8, 3, kContiguous>(p, column);
  }
  for (; column + 2 * kLanes <= p.columns; column += 2 * kLanes)
    gathered_strip<kPairRows, 2, kContiguous>(p, column);
  if (column < p.columns) gathered_strip<kOtherSingleRows, 1, kContiguous>(p, column);
}

void multiply_gathered(const GatheredProduct& p) {
  if (p.depth_offsets == nullptr) return multiply_gathered_as<true>(p);
  multiply_gathered_as<false>(p);
}

#include "bitfed/nn/kernels/isa/draw_loops.h"
#include "bitfed/nn/kernels/isa/norm_loops.h"
#include "bitfed/nn/kernels/isa/sparse_loops.h"

// In this order of operands a sum that is not a number stays so.
template <bool kStreams>
inline void add_clipped_as(const float* a, const float* b, size_t count, ClipBounds bounds, float* out) {
  for (size_t i = 0; i < count; i += kLanes)
    put<kStreams>(out + i, smaller(all(bounds.max), larger(all(bounds.min), load(a + i) + load(b + i))));
}

void add_clipped(const float* a, const float* b, size_t count, ClipBounds bounds, float* out) {
  if (is_streamed(count)) return add_clipped_as<true>(a, b, count, bounds, out);
  add_clipped_as<false>(a, b, count, bounds, out);
}

inline Lanes pass_within(ClipBounds bounds, Lanes out, Lanes gradient) {
  const Lanes none = all(0.0f);
  const Lanes below = where_at_least(out, all(bounds.max), none, gradient);
  return where_at_least(all(bounds.min), out, none, below);
}

void clip_backward(const float* out, const float* gradient, size_t count, ClipBounds bounds, float* to) {
  for (size_t i = 0; i < count; i += kLanes)
    store(to + i, pass_within(bounds, load(out + i), load(gradient + i)));
}

void descend(float* parameters, const float* gradient, size_t count, float rate) {
  const Lanes down = all(-rate);
  for (size_t i = 0; i < count; i += kLanes)
    store(parameters + i, fma(down, load(gradient + i), load(parameters + i)));
}

void descend_with_momentum(const MomentumStep& s) {
  const Lanes down = all(-s.rate);
  const Lanes momentum = all(s.momentum);
  const Lanes decay = all(s.decay);
  for (size_t i = 0; i < s.count; i += kLanes) {
    const Lanes parameter = load(s.parameters + i);
    Lanes gradient = load(s.gradient + i);
    if (s.decays) gradient = fma(decay, parameter, gradient);
    const Lanes velocity = fma(momentum, load(s.velocity + i), gradient);
    store(s.velocity + i, velocity);
    store(s.parameters + i, fma(down, velocity, parameter));
  }
}

template <Activation kActivation>
inline void affine_as(const float* x, size_t rows, size_t columns, const float* factor, const float* shift,
                      float* out) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t column = 0; column < columns; column += kLanes) {
      const size_t at = r * columns + column;
      store(out + at, activate<kActivation>(load(x + at) * load(factor + column) + load(shift + column)));
    }
  }
}

void affine(const float* x, size_t rows, size_t columns, const float* factor, const float* shift,
            Activation activation, float* out) {
  if (activation == Activation::kSign)
    return affine_as<Activation::kSign>(x, rows, columns, factor, shift, out);
  if (activation == Activation::kRelu)
    return affine_as<Activation::kRelu>(x, rows, columns, factor, shift, out);
  if (activation == Activation::kHardtanh)
    return affine_as<Activation::kHardtanh>(x, rows, columns, factor, shift, out);
  affine_as<Activation::kNone>(x, rows, columns, factor, shift, out);
}

alignas(64) constexpr float kLaneIndexes[kLanes] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

void softmax_loss(float* logits, size_t rows, size_t columns, size_t classes, const uint16_t* labels,
                  float* sums, float* margins) {
  const float share = 1.0f / static_cast<float>(rows);
  for (size_t r = 0; r < rows; ++r) {
    float* row = logits + r * columns;
    const float of_label = row[labels[r]];
    Lanes top = all(-3e38f);
    for (size_t column = 0; column < columns; column += kLanes) {
      const Lanes index = load(kLaneIndexes) + all(static_cast<float>(column));
      top = larger(top,
                   where_at_least(index, all(static_cast<float>(classes)), all(-3e38f), load(row + column)));
    }
    const float largest = largest_of(top);
    Lanes sum = all(0.0f);
    for (size_t column = 0; column < columns; column += kLanes) {
      const Lanes index = load(kLaneIndexes) + all(static_cast<float>(column));
      const Lanes power = exponential(load(row + column) - all(largest));
      const Lanes counted = where_at_least(index, all(static_cast<float>(classes)), all(0.0f), power);
      store(row + column, counted);
      sum = sum + counted;
    }
    const float whole = sum_of(sum);
    const Lanes factor = all(share / whole);
    for (size_t column = 0; column < columns; column += kLanes)
      store(row + column, load(row + column) * factor);
    row[labels[r]] -= share;
    sums[r] = whole;
    margins[r] = largest - of_label;
  }
}

void adam(const AdamStep& s) {
  const Lanes beta1 = all(s.beta1);
  const Lanes beta2 = all(s.beta2);
  const Lanes rest1 = all(s.rest1);
  const Lanes rest2 = all(s.rest2);
  const Lanes rate = all(s.rate);
  const Lanes epsilon = all(s.epsilon);
  const Lanes bound = all(s.bound);
  const Lanes none = all(0.0f);
  for (size_t i = 0; i < s.count; i += kLanes) {
    Lanes parameter = load(s.parameters + i);
    Lanes gradient = load(s.gradient + i);
    if (s.bound > 0) gradient = where_at_least(bound, larger(parameter, none - parameter), gradient, none);
    const Lanes first = fma(beta1, load(s.first_moment + i), rest1 * gradient);
    const Lanes second = fma(beta2, load(s.second_moment + i), rest2 * gradient * gradient);
    store(s.first_moment + i, first);
    store(s.second_moment + i, second);
    parameter = parameter - rate * first / (root(second) + epsilon);
    if (s.bound > 0) parameter = larger(smaller(parameter, bound), none - bound);
    store(s.parameters + i, parameter);
  }
}

// Blocks of 4 x 4, in registers that every instruction set has.
void transpose(const float* from, size_t rows, size_t columns, float* to, size_t to_stride) {
  typedef float Four __attribute__((vector_size(16)));
  const auto at = [](float* p) -> Four& { return *reinterpret_cast<Four*>(p); };
  const auto read = [](const float* p) { return *reinterpret_cast<const Four*>(p); };
  size_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    for (size_t column = 0; column < columns; column += 4) {
      const float* block = from + row * columns + column;
      const Four a = read(block);
      const Four b = read(block + columns);
      const Four c = read(block + 2 * columns);
      const Four d = read(block + 3 * columns);
      const Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
      const Four ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      const Four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
      const Four cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      float* out = to + column * to_stride + row;
      at(out) = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
      at(out + to_stride) = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
      at(out + 2 * to_stride) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
      at(out + 3 * to_stride) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
    }
  }
  for (; row < rows; ++row) {
    for (size_t column = 0; column < columns; ++column)
      to[column * to_stride + row] = from[row * columns + column];
  }
}

#include "bitfed/nn/kernels/isa/binary_loops.h"
#include "bitfed/nn/kernels/isa/pool_loops.h"

constexpr NeuralKernels table(const char* name) {
  return {name,
          multiply,
          multiply_gathered,
          multiply_sparse,
          count_nonzeros,
          list_nonzeros,
          draw,
          drop,
          norm_forward,
          norm_backward,
          moments,
          norm_pool,
          norm_pool_sums,
          norm_pool_backward,
          bias_pool,
          bias_pool_backward,
          multiply_pairs,
          sum_pairs,
          largest_magnitude,
          quantise,
          quantise_pairs,
          sign_pairs,
          pair_shorts,
          pair_signs,
          transpose_signs,
          add_clipped,
          clip_backward,
          descend,
          descend_with_momentum,
          affine,
          softmax_loss,
          adam,
          transpose,
          signs,
          add,
          combine,
          mean,
          standard_deviation,
          standardise,
          sign_backward,
          blend_filter,
          blend_filter_backward,
          fuse_filter_backward};
}
