#include "bitfed/nn/rotated/rotation.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace bitfed {
namespace {

constexpr size_t kMaxIterations = 60;
constexpr float kRounded = 0.998f;    // a rotation's columns become longer by rounding, but not by so much
constexpr double kOrthogonal = 1e-5;  // converged at this root mean square of the rows of X'X - I

void multiply(const float* a, size_t a_row_step, size_t a_depth_step, const Matrix& b, Matrix* c) {
  neural_kernels().multiply({a, a_row_step, a_depth_step, b.values.data(), b.stride, c->values.data(),
                             c->stride, c->rows, c->stride, b.rows});
}

Matrix identity(size_t size) {
  Matrix matrix(size, size);
  for (size_t i = 0; i < size; ++i) matrix.row(i)[i] = 1;
  return matrix;
}

// An upper bound of the largest singular value: sqrt(largest row sum * largest column sum) of magnitudes.
double norm_bound(const Matrix& matrix) {
  std::vector<double> columns(matrix.columns);
  double largest_row = 0;
  for (size_t r = 0; r < matrix.rows; ++r) {
    double row = 0;
    for (size_t c = 0; c < matrix.columns; ++c) {
      const double magnitude = std::fabs(matrix.row(r)[c]);
      row += magnitude;
      columns[c] += magnitude;
    }
    largest_row = std::max(largest_row, row);
  }
  return std::sqrt(largest_row * *std::max_element(columns.begin(), columns.end()));
}

void transpose(const Matrix& from, Matrix* to) {
  for (size_t r = 0; r < from.rows; ++r) {
    for (size_t c = 0; c < from.columns; ++c) to->row(c)[r] = from.row(r)[c];
  }
}

}  // namespace

FilterShape::FilterShape(size_t n) : rows(n), columns(1) {
  for (size_t divisor = 2; divisor * divisor <= n; ++divisor) {
    if (n % divisor == 0) {
      rows = n / divisor;
      columns = divisor;
    }
  }
}

// By Cauchy-Schwarz.
float max_times_rotation(size_t depth) {
  const float max = 2147483000.0f / (kOfRotation * std::sqrt(static_cast<float>(depth)));
  return std::min(32767.0f, std::floor(max));
}

float factor_to(float max, float largest) {
  return largest == 0 ? 1 : max / largest;
}

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

void pair_rows(const float* rows, size_t count, size_t stride, float factor, const float* zeros,
               int16_t* pairs) {
  const NeuralKernels& kernels = neural_kernels();
  for (size_t r = 0; r < count; r += 2) {
    const float* row = rows + r * stride;
    kernels.quantise_pairs(row, r + 1 < count ? row + stride : zeros, stride, factor, pairs + r * stride);
  }
}

std::vector<uint32_t> multiples(size_t count, size_t step) {
  std::vector<uint32_t> all;
  for (size_t i = 0; i < count; ++i) all.push_back(static_cast<uint32_t>(i * step));
  return all;
}

FilterRotation::FilterRotation(size_t inputs)
    : shape_(inputs),
      stride_(padded(shape_.columns)),
      left_stride_(padded(shape_.rows)),
      r1_transposed_(shape_.rows, shape_.rows),
      r2_transposed_(shape_.columns, shape_.columns),
      left_(shape_.rows * left_stride_),
      right_((shape_.columns + 1) / 2 * 2 * stride_),
      whole_(shape_.rows * stride_),
      halfway_(shape_.rows * stride_),
      halfway_pairs_((shape_.rows + 1) / 2 * 2 * stride_),
      nothing_(std::max(stride_, left_stride_)),
      left_offsets_(multiples(shape_.rows, left_stride_)),
      row_offsets_(multiples(shape_.rows, stride_)) {}

void FilterRotation::take(const Matrix& r1, const Matrix& r2, bool back) {
  transpose(r1, &r1_transposed_);
  left_factor_ = factor_of_rotation(back ? r1_transposed_ : r1);
  neural_kernels().quantise((back ? r1 : r1_transposed_).values.data(), r1.rows * r1.stride, left_factor_,
                            left_.data());
  if (back) transpose(r2, &r2_transposed_);
  const Matrix& right = back ? r2_transposed_ : r2;
  right_factor_ = factor_of_rotation(right);
  pair_rows(right.values.data(), r2.rows, r2.stride, right_factor_, nothing_.data(), right_.data());
}

void FilterRotation::rotate(const float* filter, float* rotated) {
  const NeuralKernels& kernels = neural_kernels();
  const size_t count = shape_.rows * stride_;
  const float own =
      factor_to(kRounded * max_times_rotation(shape_.columns), kernels.largest_magnitude(filter, count));
  kernels.quantise(filter, count, own, whole_.data());
  kernels.multiply_pairs({.a = whole_.data(),
                          .offsets = row_offsets_.data(),
                          .segments = 1,
                          .pairs = (shape_.columns + 1) / 2,
                          .a_segment_step = 0,
                          .b = right_.data(),
                          .b_segment_step = 0,
                          .c = halfway_.data(),
                          .c_stride = stride_,
                          .rows = shape_.rows,
                          .columns = stride_,
                          .factor = 1 / (own * right_factor_)});
  const float half = factor_to(kRounded * max_times_rotation(shape_.rows),
                               kernels.largest_magnitude(halfway_.data(), count));
  pair_rows(halfway_.data(), shape_.rows, stride_, half, nothing_.data(), halfway_pairs_.data());
  kernels.multiply_pairs({.a = left_.data(),
                          .offsets = left_offsets_.data(),
                          .segments = 1,
                          .pairs = (shape_.rows + 1) / 2,
                          .a_segment_step = 0,
                          .b = halfway_pairs_.data(),
                          .b_segment_step = 0,
                          .c = rotated,
                          .c_stride = stride_,
                          .rows = shape_.rows,
                          .columns = stride_,
                          .factor = 1 / (half * left_factor_)});
}

Matrix polar_factor(const Matrix& matrix) {
  const size_t size = matrix.rows;
  const double norm = norm_bound(matrix);
  if (!(norm > 0)) return identity(size);
  // All singular values of X are in (0, 1]; X (3 I - X'X) / 2 brings each nearer to 1.
  Matrix x(size, size);
  for (size_t r = 0; r < size; ++r) {
    for (size_t c = 0; c < size; ++c) x.row(r)[c] = static_cast<float>(matrix.row(r)[c] / norm);
  }
  Matrix gram(size, size);
  Matrix next(size, size);
  for (size_t iteration = 0; iteration < kMaxIterations; ++iteration) {
    multiply(x.values.data(), 1, x.stride, x, &gram);
    double error = 0;
    for (size_t r = 0; r < size; ++r) {
      for (size_t c = 0; c < size; ++c) {
        const float off = gram.row(r)[c] - (r == c ? 1.0f : 0.0f);
        error += static_cast<double>(off) * off;
        gram.row(r)[c] = (r == c ? 1.5f : 0.0f) - 0.5f * gram.row(r)[c];
      }
    }
    if (error / static_cast<double>(size) < kOrthogonal * kOrthogonal) break;
    multiply(x.values.data(), x.stride, 1, gram, &next);
    std::swap(x, next);
  }
  return x;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.columns);
  multiply(a.values.data(), a.stride, 1, b, &c);
  return c;
}

}  // namespace bitfed
