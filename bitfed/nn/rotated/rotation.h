#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bitfed/nn/kernels/matrix.h"

namespace bitfed {

// The rotation of a layer's filters (FedBNN; Lin et al., "Rotated binary neural network", NeurIPS 2020): a
// filter of n weights is seen as a matrix W of `rows` x `columns`, and rotated by an orthogonal matrix from
// either side, R1' W R2. All filters of the layer share R1 and R2.
struct FilterShape {
  size_t rows;
  size_t columns;  // rows * columns = n, columns <= rows, as near to each other as they can be

  explicit FilterShape(size_t n);
};

// Contiguous filters, each a matrix with padded rows.
struct Filters {
  Filters() : shape(1) {}
  Filters(size_t filter_count, size_t n)
      : shape(n),
        count(filter_count),
        stride(padded(shape.columns)),
        values(filter_count * shape.rows * stride) {}

  bool is_padded() const { return stride != shape.columns; }
  size_t filter_floats() const { return shape.rows * stride; }
  float* filter(size_t f) { return values.data() + f * filter_floats(); }
  const float* filter(size_t f) const { return values.data() + f * filter_floats(); }

  FilterShape shape;
  size_t count = 0;
  size_t stride = 0;
  Floats values;
};

// Filters that are processed together: they stay in the cache.
struct FilterRun {
  size_t first;
  size_t count;
};
inline constexpr size_t kRotatedTogether = 8;

// Memory for rotating filters of `inputs` weights, made once, so that training allocates nothing.
struct RotationWorkspace {
  explicit RotationWorkspace(size_t inputs);

  Filters halfway;  // W R2
  Matrix r2_transposed;
};

template <typename Body>
void for_each_run(size_t filters, size_t max_run, Body body) {
  for (size_t first = 0; first < filters; first += max_run)
    body(FilterRun{first, filters - first < max_run ? filters - first : max_run});
}

// rotated = R1' W R2 of `count` contiguous filters, at most kRotatedTogether; and its backward pass, R1 W R2'
// (after prepare_backward).
void rotate(const float* filters, size_t count, const Matrix& r1, const Matrix& r2,
            RotationWorkspace* workspace, float* rotated);
void prepare_backward(const Matrix& r2, RotationWorkspace* workspace);
void rotate_backward(const float* filters, size_t count, const Matrix& r1, RotationWorkspace* workspace,
                     float* rotated);

// The orthogonal matrix nearest to a square one, U V' of its singular value decomposition U S V', by the
// Newton-Schulz iteration, which needs products alone. A matrix of zeros gives the identity.
Matrix polar_factor(const Matrix& matrix);

Matrix product(const Matrix& a, const Matrix& b);

}  // namespace bitfed
