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

Matrix transposed(const Matrix& matrix) {
  Matrix result(matrix.columns, matrix.rows);
  for (size_t r = 0; r < matrix.rows; ++r) {
    for (size_t c = 0; c < matrix.columns; ++c) result.row(c)[r] = matrix.row(r)[c];
  }
  return result;
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

// turned = left * W * right of every filter; left by its steps.
void turn(const Filters& filters, const Matrix& left, bool left_transposed, const Matrix& right,
          Filters* scratch, Filters* turned) {
  const FilterShape& shape = filters.shape;
  const NeuralKernels& kernels = neural_kernels();
  kernels.multiply({filters.values.data(), filters.stride, 1, right.values.data(), right.stride,
                    scratch->values.data(), scratch->stride, filters.count * shape.rows, scratch->stride,
                    shape.columns});
  const size_t row_step = left_transposed ? 1 : left.stride;
  const size_t depth_step = left_transposed ? left.stride : 1;
  for (size_t f = 0; f < filters.count; ++f) {
    kernels.multiply({left.values.data(), row_step, depth_step, scratch->filter(f), scratch->stride,
                      turned->filter(f), turned->stride, shape.rows, turned->stride, shape.rows});
  }
}

// sum += x' y over the rows of all filters: columns x columns.
Matrix inner_of_columns(const Filters& x, const Filters& y) {
  Matrix sum(x.shape.columns, y.shape.columns);
  neural_kernels().multiply({x.values.data(), 1, x.stride, y.values.data(), y.stride, sum.values.data(),
                             sum.stride, x.shape.columns, sum.stride, x.count * x.shape.rows});
  return sum;
}

// sum of x y' over all filters: rows x rows.
Matrix inner_of_rows(const Filters& x, const Filters& y) {
  const size_t rows = x.shape.rows;
  Matrix sum(rows, rows);
  Floats turned(y.count * y.stride * sum.stride);
  for (size_t f = 0; f < y.count; ++f) {
    neural_kernels().transpose(y.filter(f), rows, y.stride, turned.data() + f * y.stride * sum.stride,
                               sum.stride);
  }
  std::vector<uint32_t> places;
  for (size_t row = 0; row < rows; ++row) places.push_back(static_cast<uint32_t>(row * x.stride));
  neural_kernels().multiply_gathered({x.values.data(), places.data(), true, false, x.count, x.filter_floats(),
                                      turned.data(), sum.stride, y.stride * sum.stride, sum.values.data(),
                                      sum.stride, rows, sum.stride, x.shape.columns});
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

void rotate(const Filters& filters, const Matrix& r1, const Matrix& r2, Filters* scratch, Filters* turned) {
  turn(filters, r1, true, r2, scratch, turned);
}

void rotate_back(const Filters& filters, const Matrix& r1, const Matrix& r2, Filters* scratch,
                 Filters* turned) {
  turn(filters, r1, false, transposed(r2), scratch, turned);
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

void optimise_rotation(const Filters& filters, size_t iterations, Matrix* r1, Matrix* r2) {
  Filters scratch = filters;
  Filters signs = filters;
  Filters turned = filters;
  for (size_t i = 0; i < iterations; ++i) {
    rotate(filters, *r1, *r2, &scratch, &turned);
    neural_kernels().signs(turned.values.data(), turned.values.size(), signs.values.data());
    // R1 turns W R2 nearest to the signs: the polar factor of sum (W R2) B'.
    neural_kernels().multiply({filters.values.data(), filters.stride, 1, r2->values.data(), r2->stride,
                               scratch.values.data(), scratch.stride, filters.count * filters.shape.rows,
                               scratch.stride, filters.shape.columns});
    *r1 = polar_factor(inner_of_rows(scratch, signs));
    // And R2 turns W' R1: the polar factor of sum (R1' W)' B.
    for (size_t f = 0; f < filters.count; ++f) {
      neural_kernels().multiply({r1->values.data(), 1, r1->stride, filters.filter(f), filters.stride,
                                 scratch.filter(f), scratch.stride, filters.shape.rows, scratch.stride,
                                 filters.shape.rows});
    }
    *r2 = polar_factor(inner_of_columns(scratch, signs));
  }
}

}  // namespace bitfed
