#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "bitfed/base/hash/random.h"
#include "bitfed/nn/kernels/matrix.h"

namespace bitfed {
namespace {

const std::vector<size_t> kCounts = {1, 15, 16, 17, 31, 33, 63, 64, 65, 127};

// About a third of the values are 0, of either sign; some are not numbers.
Matrix mostly_zeros(size_t rows, size_t columns) {
  RandomStream random({3, "zeros", rows, columns});
  Matrix matrix(rows, columns);
  for (size_t i = 0; i < matrix.values.size(); ++i) {
    const float values[] = {0.0f, -0.0f, std::numeric_limits<float>::quiet_NaN(), 1.5f, -2.5f, 1e-40f};
    matrix.values[i] = values[random.below(6)];
  }
  return matrix;
}

TEST(SparseKernelsTest, NonzerosAreCounted) {
  for (const size_t columns : kCounts) {
    const Matrix x = mostly_zeros(3, columns);
    size_t expected = 0;
    for (size_t i = 0; i < x.values.size(); ++i) expected += x.values[i] != 0 ? 1 : 0;
    for (const NeuralKernels* table : supported_neural_kernels())
      EXPECT_EQ(table->count_nonzeros(x.values.data(), x.values.size()), expected) << table->name;
  }
}

TEST(SparseKernelsTest, NonzerosAreListedRowByRow) {
  for (const size_t columns : kCounts) {
    const size_t rows = 5;
    const Matrix x = mostly_zeros(rows, columns);
    std::vector<uint32_t> offsets(columns);
    std::iota(offsets.begin(), offsets.end(), 1000u);
    std::vector<float> values;
    std::vector<uint32_t> found, ends;
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < columns; ++c) {
        if (x.row(r)[c] == 0) continue;
        values.push_back(x.row(r)[c]);
        found.push_back(offsets[c]);
      }
      ends.push_back(static_cast<uint32_t>(values.size()));
    }
    for (const NeuralKernels* table : supported_neural_kernels()) {
      std::vector<float> own_values(rows * columns + kLanes);
      std::vector<uint32_t> own_found(own_values.size()), own_ends(rows);
      table->list_nonzeros({x.values.data(), x.stride, rows, columns, offsets.data(), own_values.data(),
                            own_found.data(), own_ends.data()});
      EXPECT_EQ(own_ends, ends) << table->name << " " << columns;
      for (size_t i = 0; i < values.size(); ++i) {
        if (std::isnan(values[i])) {
          EXPECT_TRUE(std::isnan(own_values[i])) << table->name;
        } else {
          EXPECT_EQ(own_values[i], values[i]) << table->name;
        }
        EXPECT_EQ(own_found[i], found[i]) << table->name;
      }
    }
  }
}

}  // namespace
}  // namespace bitfed
