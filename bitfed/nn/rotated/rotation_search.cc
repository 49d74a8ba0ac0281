#include "bitfed/nn/rotated/rotation_search.h"

#include <algorithm>
#include <cmath>

namespace bitfed {
namespace {

constexpr size_t kRunShorts = 12000;  // of filters processed together: a first-level cache holds them twice
constexpr float kMaxShort = 32767;

float larger_or_none(float a, float b) {
  return a >= b || std::isnan(a) ? a : b;
}

// A filter is loaded from memory while the one before it is processed.
void prefetch(const Shorts& filters, size_t first, size_t count) {
  if (first + count > filters.size()) return;
  constexpr size_t kLine = 32;
  for (size_t i = 0; i < count; i += kLine) __builtin_prefetch(filters.data() + first + i);
}

}  // namespace

RotationSearch::RotationSearch(const Filters& like)
    : shape_(like.shape),
      stride_(like.stride),
      left_stride_(padded(shape_.rows)),
      filter_shorts_((shape_.rows + 1) / 2 * 2 * stride_),
      row_pairs_((shape_.rows + 1) / 2),
      column_pairs_((shape_.columns + 1) / 2),
      run_(std::max<size_t>(1, kRunShorts / filter_shorts_)),
      weight_factors_(like.count),
      weights_(like.count * filter_shorts_),
      left_(shape_.rows * left_stride_),
      right_(column_pairs_ * 2 * stride_),
      halfway_(like.count * filter_shorts_),
      signs_(like.count * filter_shorts_),
      halfway_pairs_(run_ * filter_shorts_),
      rotated_(run_ * filter_shorts_),
      columns_paired_(run_ * stride_ * left_stride_),
      nothing_(stride_),
      means_(stride_),
      variances_(stride_),
      row_offsets_(multiples(shape_.rows, stride_)),
      left_offsets_(multiples(shape_.rows, left_stride_)) {}

// Rotated from the left, a value is at most as large as its column is long; from both sides, as its filter is
// long.
void RotationSearch::take(size_t f, const float* filter) {
  const NeuralKernels& kernels = neural_kernels();
  const float largest = kernels.largest_magnitude(filter, shape_.rows * stride_);
  weight_factors_[f] = factor_to(max_times_rotation(shape_.rows), largest);
  pair_rows(filter, shape_.rows, stride_, weight_factors_[f], nothing_.data(),
            weights_.data() + f * filter_shorts_);
  kernels.moments(filter, shape_.rows, stride_, means_.data(), variances_.data());
  float all_squares = 0 * largest;  // not a number if `largest` is not one, as all that is computed from it
  float max_squares = all_squares;
  for (size_t c = 0; c < shape_.columns; ++c) {
    const float squares = static_cast<float>(shape_.rows) * (variances_[c] + means_[c] * means_[c]);
    all_squares += squares;
    max_squares = std::max(max_squares, squares);
  }
  if (f == 0) longest_column_ = longest_filter_ = 0;
  longest_column_ = larger_or_none(longest_column_, std::sqrt(max_squares));
  longest_filter_ = larger_or_none(longest_filter_, std::sqrt(all_squares));
}

// Means of rotations are shorter than rotations, and other combinations may be longer. Neither signs nor
// polar factors depend on the length, so the longest column counts as 1.
void RotationSearch::take_left(const Matrix& r1) {
  Matrix transposed(r1.rows, r1.columns);
  for (size_t r = 0; r < r1.rows; ++r) {
    for (size_t c = 0; c < r1.columns; ++c) transposed.row(c)[r] = r1.row(r)[c];
  }
  neural_kernels().quantise(transposed.row(0), r1.rows * r1.stride, factor_of_rotation(r1), left_.data());
}

void RotationSearch::take_right(const Matrix& r2) {
  pair_rows(r2.row(0), r2.rows, r2.stride, factor_of_rotation(r2), nothing_.data(), right_.data());
}

void RotationSearch::rotate_left(const FilterRun& run) {
  const NeuralKernels& kernels = neural_kernels();
  for (size_t i = 0; i < run.count; ++i) {
    const size_t at = (run.first + i) * filter_shorts_;
    int16_t* halfway = halfway_.data() + at;
    prefetch(weights_, at + filter_shorts_, filter_shorts_);
    kernels.multiply_pairs({.a = left_.data(),
                            .offsets = left_offsets_.data(),
                            .segments = 1,
                            .pairs = row_pairs_,
                            .a_segment_step = 0,
                            .b = weights_.data() + at,
                            .b_segment_step = 0,
                            .c = nullptr,
                            .c_stride = stride_,
                            .rows = shape_.rows,
                            .columns = stride_,
                            .factor = halfway_factor_ / (weight_factors_[run.first + i] * kOfRotation),
                            .rounded_c = halfway});
    for (size_t r = 0; r < shape_.rows; r += 2)
      kernels.pair_shorts(halfway + r * stride_, halfway + (r + 1) * stride_, stride_,
                          halfway_pairs_.data() + i * filter_shorts_ + r * stride_);
  }
}

void RotationSearch::rotate_right(const FilterRun& run) {
  const NeuralKernels& kernels = neural_kernels();
  for (size_t i = 0; i < run.count; ++i) {
    const size_t at = (run.first + i) * filter_shorts_;
    int16_t* rotated = rotated_.data() + i * filter_shorts_;
    prefetch(halfway_, at + filter_shorts_, filter_shorts_);
    kernels.multiply_pairs({.a = halfway_.data() + at,
                            .offsets = row_offsets_.data(),
                            .segments = 1,
                            .pairs = column_pairs_,
                            .a_segment_step = 0,
                            .b = right_.data(),
                            .b_segment_step = 0,
                            .c = nullptr,
                            .c_stride = stride_,
                            .rows = shape_.rows,
                            .columns = stride_,
                            .factor = rotated_factor_ / (halfway_factor_ * kOfRotation),
                            .rounded_c = rotated});
    for (size_t r = 0; r < shape_.rows; r += 2)
      kernels.pair_signs(rotated + r * stride_, rotated + (r + 1) * stride_, stride_,
                         signs_.data() + at + r * stride_);
    kernels.transpose_signs(rotated, shape_.rows, stride_,
                            columns_paired_.data() + i * stride_ * left_stride_, left_stride_);
  }
}

// sum of (R1' W R2) B' over the filters: rows x rows.
void RotationSearch::add_inner_of_rows(const FilterRun& run, Matrix* sum) {
  neural_kernels().multiply_pairs({.a = rotated_.data(),
                                   .offsets = row_offsets_.data(),
                                   .segments = run.count,
                                   .pairs = column_pairs_,
                                   .a_segment_step = filter_shorts_,
                                   .b = columns_paired_.data(),
                                   .b_segment_step = stride_ * left_stride_,
                                   .c = sum->row(0),
                                   .c_stride = sum->stride,
                                   .rows = shape_.rows,
                                   .columns = left_stride_,
                                   .factor = 1 / rotated_factor_,
                                   .adds = run.first > 0});
}

// sum of (R1' W)' B: columns x columns.
void RotationSearch::add_inner_of_columns(const FilterRun& run, Matrix* sum) {
  neural_kernels().sum_pairs({.a = halfway_pairs_.data(),
                              .a_stride = 2 * stride_,
                              .b = signs_.data() + run.first * filter_shorts_,
                              .pairs = run.count * row_pairs_,
                              .c = sum->row(0),
                              .c_stride = sum->stride,
                              .rows = shape_.columns,
                              .columns = stride_,
                              .factor = 1 / halfway_factor_,
                              .adds = run.first > 0});
}

void RotationSearch::improve(size_t iterations, Matrix* r1, Matrix* r2) {
  // Rounding may make columns and filters a little longer.
  halfway_factor_ = factor_to(max_times_rotation(shape_.columns), 1.01f * longest_column_);
  rotated_factor_ = factor_to(kMaxShort, 1.01f * longest_filter_);
  take_left(*r1);
  for_each_run(weight_factors_.size(), run_, [&](const FilterRun& run) { rotate_left(run); });
  for (size_t i = 0; i < iterations; ++i) {
    // The R1 that brings W R2 nearest to the signs B: the polar factor of sum (W R2) B' = R1 sum (R1' W R2)
    // B'.
    take_right(*r2);
    Matrix rows(r1->rows, r1->rows);
    for_each_run(weight_factors_.size(), run_, [&](const FilterRun& run) {
      rotate_right(run);
      add_inner_of_rows(run, &rows);
    });
    *r1 = polar_factor(product(*r1, rows));
    // The R2 that brings R1' W nearest: the polar factor of sum (R1' W)' B.
    take_left(*r1);
    Matrix columns(r2->rows, r2->rows);
    for_each_run(weight_factors_.size(), run_, [&](const FilterRun& run) {
      rotate_left(run);
      add_inner_of_columns(run, &columns);
    });
    *r2 = polar_factor(columns);
  }
}

}  // namespace bitfed
