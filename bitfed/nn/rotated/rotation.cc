#include "bitfed/nn/rotated/rotation.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

namespace bitfed {
namespace {

constexpr size_t kMaxIterations = 60;
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

// halfway = W * right of every filter
void rotate_right(const float* filters, size_t count, const Matrix& right, Filters* halfway) {
  const size_t stride = halfway->stride;
  neural_kernels().multiply({filters, stride, 1, right.values.data(), right.stride, halfway->filter(0),
                             stride, count * halfway->shape.rows, stride, halfway->shape.columns});
}

// rotated = left * W, or left' * W, of every filter
void rotate_left(const Filters& halfway, size_t count, const Matrix& left, bool left_transposed,
                 float* rotated) {
  const size_t rows = halfway.shape.rows;
  const size_t row_step = left_transposed ? 1 : left.stride;
  const size_t depth_step = left_transposed ? left.stride : 1;
  for (size_t f = 0; f < count; ++f) {
    neural_kernels().multiply({left.values.data(), row_step, depth_step, halfway.filter(f), halfway.stride,
                               rotated + f * halfway.filter_floats(), halfway.stride, rows, halfway.stride,
                               rows});
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

RotationWorkspace::RotationWorkspace(size_t inputs)
    : halfway(kRotatedTogether, inputs), r2_transposed(halfway.shape.columns, halfway.shape.columns) {}

void rotate(const float* filters, size_t count, const Matrix& r1, const Matrix& r2,
            RotationWorkspace* workspace, float* rotated) {
  assert(count <= kRotatedTogether);
  rotate_right(filters, count, r2, &workspace->halfway);
  rotate_left(workspace->halfway, count, r1, true, rotated);
}

void prepare_backward(const Matrix& r2, RotationWorkspace* workspace) {
  for (size_t r = 0; r < r2.rows; ++r) {
    for (size_t c = 0; c < r2.columns; ++c) workspace->r2_transposed.row(c)[r] = r2.row(r)[c];
  }
}

void rotate_backward(const float* filters, size_t count, const Matrix& r1, RotationWorkspace* workspace,
                     float* rotated) {
  assert(count <= kRotatedTogether);
  rotate_right(filters, count, workspace->r2_transposed, &workspace->halfway);
  rotate_left(workspace->halfway, count, r1, false, rotated);
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
