#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bitfed/nn/kernels/matrix.h"

namespace bitfed {

// The rotation of a layer's filters (FedBNN; Lin et al., "Rotated binary neural network", NeurIPS 2020): a
// filter of n numbers is seen as a matrix of `rows` x `columns`, and turned by one orthogonal matrix from
// either side, R1' W R2. Both are shared by all filters of the layer.
struct FilterShape {
  size_t rows;
  size_t columns;  // rows * columns = n, columns <= rows, as near to each other as they can be

  explicit FilterShape(size_t n);
};

// Filters, one after the other, each as a matrix with padded rows.
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

// Filters that are worked off together: they stay in the cache.
struct FilterRun {
  size_t first;
  size_t count;
};
inline constexpr size_t kRotatedTogether = 8;

// What turning filters of `inputs` numbers needs beside them: made once, so that training allocates nothing.
struct RotationWorkspace {
  explicit RotationWorkspace(size_t inputs);

  Filters halfway;  // turned from one side
  Matrix r2_transposed;
};

template <typename Body>
void for_each_run(size_t filters, size_t most, Body body) {
  for (size_t first = 0; first < filters; first += most)
    body(FilterRun{first, filters - first < most ? filters - first : most});
}

// turned = R1' W R2 of `count` filters, kRotatedTogether at most, one after the other as in Filters; or back,
// R1 W R2' (after prepare_way_back).
void rotate(const float* filters, size_t count, const Matrix& r1, const Matrix& r2,
            RotationWorkspace* workspace, float* turned);
void prepare_way_back(const Matrix& r2, RotationWorkspace* workspace);
void rotate_back(const float* filters, size_t count, const Matrix& r1, RotationWorkspace* workspace,
                 float* turned);

// The orthogonal matrix nearest to a square one, U V' of its singular value decomposition U S V', by Newton
// and Schulz: products alone. A matrix of zeros gives the identity.
Matrix polar_factor(const Matrix& matrix);

Matrix product(const Matrix& a, const Matrix& b);

}  // namespace bitfed
