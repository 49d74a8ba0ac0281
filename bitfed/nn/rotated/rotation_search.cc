#include "bitfed/nn/rotated/rotation_search.h"

#include <algorithm>
#include <cmath>

namespace bitfed {
namespace {

constexpr size_t kRunShorts =
    12000;  // of filters that are worked off together: a first-level cache holds them twice
constexpr float kOfRotation = 16384;  // what the longest column of a rotation comes to
constexpr float kMostOfShort = 32767;

// Sums of `depth` products of such a column with numbers up to this stay below 2^31 (Cauchy and Schwarz).
float most_beside_rotation(size_t depth) {
  const float most = 2147483000.0f / (kOfRotation * std::sqrt(static_cast<float>(depth)));
  return std::min(kMostOfShort, std::floor(most));
}

// Brings numbers up to `largest` to `most`; not a number if that is not one.
float factor_to(float most, float largest) {
  return largest == 0 ? 1 : most / largest;
}

float larger_or_none(float a, float b) {
  return a >= b || std::isnan(a) ? a : b;
}

// Averages of rotations are shorter than rotations, other means of them may be longer: neither signs nor
// polar factors hang on the length, so the longest column counts as 1.
float factor_of_rotation(const Matrix& rotation) {
  double longest = 0;
  for (size_t c = 0; c < rotation.columns; ++c) {
    double squares = 0;
    for (size_t r = 0; r < rotation.rows; ++r)
      squares += static_cast<double>(rotation.row(r)[c]) * rotation.row(r)[c];
    longest = std::max(longest, squares);
  }
  return factor_to(kOfRotation, static_cast<float>(std::sqrt(longest)));
}

std::vector<uint32_t> places(size_t count, size_t step) {
  std::vector<uint32_t> all;
  for (size_t i = 0; i < count; ++i) all.push_back(static_cast<uint32_t>(i * step));
  return all;
}

// Two rows side by side, the numbers of a column as a pair; an odd last row is paired with zeros.
void pair_rows(const float* rows, size_t count, size_t stride, float factor, const float* zeros,
               int16_t* pairs) {
  const NeuralKernels& kernels = neural_kernels();
  for (size_t r = 0; r < count; r += 2) {
    const float* row = rows + r * stride;
    kernels.quantise_pairs(row, r + 1 < count ? row + stride : zeros, stride, factor, pairs + r * stride);
  }
}

// A filter comes from memory while the one before it is at work.
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
      turned_(run_ * filter_shorts_),
      columns_paired_(run_ * stride_ * left_stride_),
      nothing_(stride_),
      means_(stride_),
      variances_(stride_),
      row_places_(places(shape_.rows, stride_)),
      left_places_(places(shape_.rows, left_stride_)) {}

// No number can be larger than the column that it is turned out of is long, nor, once it is turned from both
// sides, than its whole filter.
void RotationSearch::take(size_t f, const float* filter) {
  const NeuralKernels& kernels = neural_kernels();
  const float largest = kernels.largest_magnitude(filter, shape_.rows * stride_);
  weight_factors_[f] = factor_to(most_beside_rotation(shape_.rows), largest);
  pair_rows(filter, shape_.rows, stride_, weight_factors_[f], nothing_.data(),
            weights_.data() + f * filter_shorts_);
  kernels.moments(filter, shape_.rows, stride_, means_.data(), variances_.data());
  float all_squares = 0 * largest;  // not a number where `largest` is none: nothing made with it is one then
  float most_squares = all_squares;
  for (size_t c = 0; c < shape_.columns; ++c) {
    const float squares = static_cast<float>(shape_.rows) * (variances_[c] + means_[c] * means_[c]);
    all_squares += squares;
    most_squares = std::max(most_squares, squares);
  }
  if (f == 0) longest_column_ = longest_filter_ = 0;
  longest_column_ = larger_or_none(longest_column_, std::sqrt(most_squares));
  longest_filter_ = larger_or_none(longest_filter_, std::sqrt(all_squares));
}

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

void RotationSearch::turn_left(const FilterRun& run) {
  const NeuralKernels& kernels = neural_kernels();
  for (size_t i = 0; i < run.count; ++i) {
    const size_t at = (run.first + i) * filter_shorts_;
    int16_t* halfway = halfway_.data() + at;
    prefetch(weights_, at + filter_shorts_, filter_shorts_);
    kernels.multiply_pairs({.a = left_.data(),
                            .places = left_places_.data(),
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

void RotationSearch::turn_right(const FilterRun& run) {
  const NeuralKernels& kernels = neural_kernels();
  for (size_t i = 0; i < run.count; ++i) {
    const size_t at = (run.first + i) * filter_shorts_;
    int16_t* turned = turned_.data() + i * filter_shorts_;
    prefetch(halfway_, at + filter_shorts_, filter_shorts_);
    kernels.multiply_pairs({.a = halfway_.data() + at,
                            .places = row_places_.data(),
                            .segments = 1,
                            .pairs = column_pairs_,
                            .a_segment_step = 0,
                            .b = right_.data(),
                            .b_segment_step = 0,
                            .c = nullptr,
                            .c_stride = stride_,
                            .rows = shape_.rows,
                            .columns = stride_,
                            .factor = turned_factor_ / (halfway_factor_ * kOfRotation),
                            .rounded_c = turned});
    for (size_t r = 0; r < shape_.rows; r += 2)
      kernels.pair_signs(turned + r * stride_, turned + (r + 1) * stride_, stride_,
                         signs_.data() + at + r * stride_);
    kernels.transpose_signs(turned, shape_.rows, stride_, columns_paired_.data() + i * stride_ * left_stride_,
                            left_stride_);
  }
}

// sum of (R1' W R2) B' over the filters: rows x rows.
void RotationSearch::add_inner_of_rows(const FilterRun& run, Matrix* sum) {
  neural_kernels().multiply_pairs({.a = turned_.data(),
                                   .places = row_places_.data(),
                                   .segments = run.count,
                                   .pairs = column_pairs_,
                                   .a_segment_step = filter_shorts_,
                                   .b = columns_paired_.data(),
                                   .b_segment_step = stride_ * left_stride_,
                                   .c = sum->row(0),
                                   .c_stride = sum->stride,
                                   .rows = shape_.rows,
                                   .columns = left_stride_,
                                   .factor = 1 / turned_factor_,
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
  // Roundings may make them a little longer.
  halfway_factor_ = factor_to(most_beside_rotation(shape_.columns), 1.01f * longest_column_);
  turned_factor_ = factor_to(kMostOfShort, 1.01f * longest_filter_);
  take_left(*r1);
  for_each_run(weight_factors_.size(), run_, [&](const FilterRun& run) { turn_left(run); });
  for (size_t i = 0; i < iterations; ++i) {
    // R1 turns W R2 nearest to the signs B: the polar factor of sum (W R2) B' = R1 sum (R1' W R2) B'.
    take_right(*r2);
    Matrix rows(r1->rows, r1->rows);
    for_each_run(weight_factors_.size(), run_, [&](const FilterRun& run) {
      turn_right(run);
      add_inner_of_rows(run, &rows);
    });
    *r1 = polar_factor(product(*r1, rows));
    // And R2 turns R1' W: the polar factor of sum (R1' W)' B.
    take_left(*r1);
    Matrix columns(r2->rows, r2->rows);
    for_each_run(weight_factors_.size(), run_, [&](const FilterRun& run) {
      turn_left(run);
      add_inner_of_columns(run, &columns);
    });
    *r2 = polar_factor(columns);
  }
}

}  // namespace bitfed
