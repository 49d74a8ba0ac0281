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

template <typename Body>
void for_each_run(size_t filters, size_t max_run, Body body) {
  for (size_t first = 0; first < filters; first += max_run)
    body(FilterRun{first, filters - first < max_run ? filters - first : max_run});
}

// Fixed point of 16 bits for products with a rotation, exact in any order. The longest column of a rotation
// has length kOfRotation; sums of `depth` products of such a column with values up to max_times_rotation stay
// below 2^31.
inline constexpr float kOfRotation = 16384;
float max_times_rotation(size_t depth);
// Scales values up to `largest` to `max`; not a number if `largest` is not one.
float factor_to(float max, float largest);
// Scales the longest column, or the longest row of a transposed rotation, to kOfRotation.
float factor_of_rotation(const Matrix& rotation);

// Rotates filters, R1' W R2, or by transposed rotations R1 W R2', which is the backward pass. W, and halfway
// W R2, are rounded to 16 bits of their own largest value, about 14 of them used.
class FilterRotation {
 public:
  explicit FilterRotation(size_t inputs);

  // `back`: for the backward pass.
  void take(const Matrix& r1, const Matrix& r2, bool back);
  // Both with the padding of Filters.
  void rotate(const float* filter, float* rotated);

 private:
  FilterShape shape_;
  size_t stride_;       // of a filter's row
  size_t left_stride_;  // of a row of R1'
  Matrix r1_transposed_, r2_transposed_;
  Shorts left_;   // R1', row by row
  Shorts right_;  // R2, rows paired
  float left_factor_ = 1;
  float right_factor_ = 1;
  Shorts whole_;          // W
  Floats halfway_;        // W R2
  Shorts halfway_pairs_;  // the same, rows paired
  Floats nothing_;        // a row
  std::vector<uint32_t> left_offsets_, row_offsets_;
};

// Two rows as 16-bit integers, interleaved; an odd last row is paired with `zeros`.
void pair_rows(const float* rows, size_t count, size_t stride, float factor, const float* zeros,
               int16_t* pairs);
// 0, step, 2 step, ...
std::vector<uint32_t> multiples(size_t count, size_t step);

// The orthogonal matrix nearest to a square one, U V' of its singular value decomposition U S V', by the
// Newton-Schulz iteration, which needs products alone. A matrix of zeros gives the identity.
Matrix polar_factor(const Matrix& matrix);

Matrix product(const Matrix& a, const Matrix& b);

}  // namespace bitfed
