#pragma once

#include <algorithm>
#include <cmath>

#include "bitfed/base/hash/random.h"
#include "bitfed/nn/rotated/rotation.h"

namespace bitfed {

inline Matrix random_matrix(size_t size, uint64_t seed) {
  RandomStream random({seed, "matrix"});
  Matrix matrix(size, size);
  for (size_t r = 0; r < size; ++r) {
    for (size_t c = 0; c < size; ++c) matrix.row(r)[c] = static_cast<float>(random.normal());
  }
  return matrix;
}

inline Filters random_filters(size_t count, size_t n) {
  RandomStream random({5, "filters"});
  Filters filters(count, n);
  for (size_t f = 0; f < count; ++f) {
    for (size_t r = 0; r < filters.shape.rows; ++r) {
      for (size_t c = 0; c < filters.shape.columns; ++c)
        filters.filter(f)[r * filters.stride + c] = static_cast<float>(random.normal());
    }
  }
  return filters;
}

// The largest element of X'X - I.
inline double distance_to_orthogonal(const Matrix& x) {
  double worst = 0;
  for (size_t i = 0; i < x.columns; ++i) {
    for (size_t j = 0; j < x.columns; ++j) {
      double dot = 0;
      for (size_t k = 0; k < x.rows; ++k) dot += static_cast<double>(x.row(k)[i]) * x.row(k)[j];
      worst = std::max(worst, std::fabs(dot - (i == j ? 1 : 0)));
    }
  }
  return worst;
}

}  // namespace bitfed
