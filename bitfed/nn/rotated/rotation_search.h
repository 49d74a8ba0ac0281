#pragma once

#include <vector>

#include "bitfed/nn/rotated/rotation.h"

namespace bitfed {

// Improves R1 and R2 so that rotated filters are near to their signs. An iteration takes B = sign(R1' W R2),
// then the R1 and then the R2 that bring the filters nearest to B. The products are of 16-bit integers, twice
// as fast as floats: rotated filters are rounded to about a thousandth of their standard deviation, and the
// rotations found are orthogonal to float precision.
class RotationSearch {
 public:
  explicit RotationSearch(const Filters& like);

  // Sets filter f of W; all filters, from the first on.
  void take(size_t f, const float* filter);
  void improve(size_t iterations, Matrix* r1, Matrix* r2);

 private:
  void take_left(const Matrix& r1);
  void take_right(const Matrix& r2);
  void rotate_left(const FilterRun& run);
  void rotate_right(const FilterRun& run);
  void add_inner_of_rows(const FilterRun& run, Matrix* sum);
  void add_inner_of_columns(const FilterRun& run, Matrix* sum);

  FilterShape shape_;
  size_t stride_;         // of a filter's row
  size_t left_stride_;    // of a row of R1
  size_t filter_shorts_;  // with padding, and with a row of zeros below an odd one
  size_t row_pairs_;
  size_t column_pairs_;
  size_t run_;

  // In fixed point: a value is its integer divided by the factor.
  std::vector<float> weight_factors_;  // of every filter
  float halfway_factor_ = 1;
  float rotated_factor_ = 1;
  float longest_column_ = 0;
  float longest_filter_ = 0;
  Shorts weights_;  // W, rows paired
  Shorts left_;     // R1', row by row
  Shorts right_;    // R2, rows paired
  Shorts halfway_;  // R1' W, row by row
  Shorts signs_;    // B, rows paired

  // Of the present run.
  Shorts halfway_pairs_;   // R1' W, rows paired
  Shorts rotated_;         // R1' W R2, row by row
  Shorts columns_paired_;  // B', rows paired
  Floats nothing_;         // a row
  Floats means_, variances_;

  std::vector<uint32_t> row_offsets_;   // of a filter's rows
  std::vector<uint32_t> left_offsets_;  // of the rows of R1'
};

}  // namespace bitfed
