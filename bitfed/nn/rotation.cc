#include "bitfed/nn/rotation.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace bitfed {
namespace {

constexpr size_t kMostIterations = 60;
constexpr double kOrthogonal = 1e-5;  // root of the mean square of a row of X'X - I that is good enough

void product(const float* a, size_t a_row_step, size_t a_depth_step, const Matrix& b, size_t rows,
             size_t depth, Matrix* c) {
  neural_kernels().multiply({a, a_row_step, a_depth_step, b.values.data(), b.stride, c->values.data(),
                             c->stride, rows, c->stride, depth});
}

Matrix identity(size_t size) {
  Matrix matrix(size, size);
  for (size_t i = 0; i < size; ++i) matrix.row(i)[i] = 1;
  return matrix;
}

// At least the largest singular value: the root of the largest sum of magnitudes of a row times that of a
// column.
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
void turn_right(const Filters& filters, const Matrix& right, Filters* halfway) {
  neural_kernels().multiply({filters.values.data(), filters.stride, 1, right.values.data(), right.stride,
                             halfway->values.data(), halfway->stride, filters.count * filters.shape.rows,
                             halfway->stride, filters.shape.columns});
}

// turned = left * W, or left' * W, of every filter
void turn_left(const Filters& filters, const Matrix& left, bool left_transposed, Filters* turned) {
  const size_t rows = filters.shape.rows;
  const size_t row_step = left_transposed ? 1 : left.stride;
  const size_t depth_step = left_transposed ? left.stride : 1;
  for (size_t f = 0; f < filters.count; ++f) {
    neural_kernels().multiply({left.values.data(), row_step, depth_step, filters.filter(f), filters.stride,
                               turned->filter(f), turned->stride, rows, turned->stride, rows});
  }
}

// sum of x' y over the rows of all filters: columns x columns.
Matrix inner_of_columns(const Filters& x, const Filters& y) {
  Matrix sum(x.shape.columns, y.shape.columns);
  neural_kernels().multiply({x.values.data(), 1, x.stride, y.values.data(), y.stride, sum.values.data(),
                             sum.stride, x.shape.columns, sum.stride, x.count * x.shape.rows});
  return sum;
}

// sum of halfway * signs' over all filters: rows x rows.
Matrix inner_of_rows(RotationWorkspace* workspace) {
  const Filters& x = workspace->halfway;
  const Filters& y = workspace->signs;
  const size_t rows = x.shape.rows;
  Matrix sum(rows, rows);
  for (size_t f = 0; f < y.count; ++f) {
    neural_kernels().transpose(y.filter(f), rows, y.stride,
                               workspace->signs_transposed.data() + f * y.stride * sum.stride, sum.stride);
  }
  neural_kernels().multiply_gathered({x.values.data(), workspace->row_places.data(), true, false, x.count,
                                      x.filter_floats(), workspace->signs_transposed.data(), sum.stride,
                                      y.stride * sum.stride, sum.values.data(), sum.stride, rows, sum.stride,
                                      x.shape.columns});
  return sum;
}

}  // namespace

FilterShape::FilterShape(size_t n) : rows(1), columns(n) {
  for (size_t divisor = 2; divisor * divisor <= n; ++divisor) {
    if (n % divisor == 0) {
      rows = divisor;
      columns = n / divisor;
    }
  }
}

RotationWorkspace::RotationWorkspace(const Filters& like)
    : halfway(like),
      turned(like),
      signs(like),
      signs_transposed(like.count * like.stride * padded(like.shape.rows)),
      r2_transposed(like.shape.columns, like.shape.columns) {
  for (size_t row = 0; row < like.shape.rows; ++row)
    row_places.push_back(static_cast<uint32_t>(row * like.stride));
}

void rotate(const Filters& filters, const Matrix& r1, const Matrix& r2, RotationWorkspace* workspace,
            Filters* turned) {
  turn_right(filters, r2, &workspace->halfway);
  turn_left(workspace->halfway, r1, true, turned);
}

void rotate_back(const Filters& filters, const Matrix& r1, const Matrix& r2, RotationWorkspace* workspace,
                 Filters* turned) {
  Matrix& transposed = workspace->r2_transposed;
  for (size_t r = 0; r < r2.rows; ++r) {
    for (size_t c = 0; c < r2.columns; ++c) transposed.row(c)[r] = r2.row(r)[c];
  }
  turn_right(filters, transposed, &workspace->halfway);
  turn_left(workspace->halfway, r1, false, turned);
}

Matrix polar_factor(const Matrix& matrix) {
  const size_t size = matrix.rows;
  const double norm = norm_bound(matrix);
  if (!(norm > 0)) return identity(size);
  // All singular values of X lie in (0, 1]; X (3 I - X'X) / 2 brings each of them nearer to 1.
  Matrix x = matrix;
  for (size_t i = 0; i < x.values.size(); ++i) x.values[i] = static_cast<float>(x.values[i] / norm);
  Matrix gram(size, size);
  Matrix next(size, size);
  for (size_t iteration = 0; iteration < kMostIterations; ++iteration) {
    product(x.values.data(), 1, x.stride, x, size, size, &gram);
    double error = 0;
    for (size_t r = 0; r < size; ++r) {
      for (size_t c = 0; c < size; ++c) {
        const float off = gram.row(r)[c] - (r == c ? 1.0f : 0.0f);
        error += static_cast<double>(off) * off;
        gram.row(r)[c] = (r == c ? 1.5f : 0.0f) - 0.5f * gram.row(r)[c];
      }
    }
    if (error / static_cast<double>(size) < kOrthogonal * kOrthogonal) break;
    product(x.values.data(), x.stride, 1, gram, size, size, &next);
    std::swap(x, next);
  }
  return x;
}

void optimise_rotation(const Filters& filters, size_t iterations, RotationWorkspace* workspace, Matrix* r1,
                       Matrix* r2) {
  Filters& signs = workspace->signs;
  for (size_t i = 0; i < iterations; ++i) {
    rotate(filters, *r1, *r2, workspace, &workspace->turned);
    neural_kernels().signs(workspace->turned.values.data(), signs.values.size(), 0, signs.values.data());
    // R1 turns W R2 nearest to the signs: the polar factor of sum (W R2) B'.
    *r1 = polar_factor(inner_of_rows(workspace));
    // And R2 turns W' R1: the polar factor of sum (R1' W)' B.
    turn_left(filters, *r1, true, &workspace->turned);
    *r2 = polar_factor(inner_of_columns(workspace->turned, signs));
  }
}

}  // namespace bitfed
