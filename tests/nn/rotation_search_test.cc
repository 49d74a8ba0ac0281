#include "bitfed/nn/rotated/rotation_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/nn/some_rotations.h"

namespace bitfed {
namespace {

struct Rotations {
  explicit Rotations(const FilterShape& shape)
      : r1(polar_factor(random_matrix(shape.rows, 1))), r2(polar_factor(random_matrix(shape.columns, 2))) {}

  void improve(const Filters& filters, size_t iterations) {
    RotationSearch search(filters);
    for (size_t f = 0; f < filters.count; ++f) search.take(f, filters.filter(f));
    search.improve(iterations, &r1, &r2);
  }

  Matrix r1;
  Matrix r2;
};

// R1' W R2 of a filter, in double precision, row by row.
std::vector<double> rotated(const Filters& filters, size_t f, const Rotations& by) {
  const size_t rows = filters.shape.rows;
  const size_t columns = filters.shape.columns;
  std::vector<double> halfway(rows * columns);
  std::vector<double> result(rows * columns);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t k = 0; k < rows; ++k) {
      for (size_t c = 0; c < columns; ++c)
        halfway[r * columns + c] +=
            static_cast<double>(by.r1.row(k)[r]) * filters.filter(f)[k * filters.stride + c];
    }
    for (size_t k = 0; k < columns; ++k) {
      for (size_t c = 0; c < columns; ++c)
        result[r * columns + c] += halfway[r * columns + k] * by.r2.row(k)[c];
    }
  }
  return result;
}

// The sum of magnitudes of all rotated filters: what the search makes large.
double alignment(const Filters& filters, const Rotations& by) {
  double sum = 0;
  for (size_t f = 0; f < filters.count; ++f) {
    for (const double number : rotated(filters, f, by)) sum += std::fabs(number);
  }
  return sum;
}

// Shapes with padding, with an odd number of rows or columns, and of the largest layers.
constexpr size_t kNumbers[] = {9, 27, 208, 272, 288, 576, 4608};

TEST(RotationSearchTest, EveryIterationBringsFiltersNearerToTheirSigns) {
  for (const size_t n : kNumbers) {
    const Filters filters = random_filters(n > 1000 ? 5 : 40, n);
    Rotations rotations(filters.shape);
    double before = alignment(filters, rotations);
    for (int i = 0; i < 3; ++i) {
      rotations.improve(filters, 1);
      const double after = alignment(filters, rotations);
      EXPECT_GT(after, before) << n;
      before = after;
    }
    EXPECT_LT(distance_to_orthogonal(rotations.r1), 1e-4) << n;
    EXPECT_LT(distance_to_orthogonal(rotations.r2), 1e-4) << n;
  }
}

// The mean of what ten clients with similar weights ended with. It is not orthogonal, and the first R1 is
// the polar factor of sum (W R2) B' only where the R1 before it is. Three iterations from the mean come as
// near to signs as three from the orthogonal matrices nearest to it.
TEST(RotationSearchTest, FromAMeanOfRotations) {
  for (const size_t n : {144u, 272u}) {
    const Filters filters = random_filters(40, n);
    Rotations mean(filters.shape);
    mean.r1 = Matrix(mean.r1.rows, mean.r1.columns);
    mean.r2 = Matrix(mean.r2.rows, mean.r2.columns);
    RandomStream random({6, "clients"});
    for (int client = 0; client < 10; ++client) {
      Filters own = filters;
      for (size_t i = 0; i < own.values.size(); ++i)
        own.values[i] += own.values[i] == 0 ? 0 : static_cast<float>(2 * random.normal());
      Rotations rotations(filters.shape);
      rotations.improve(own, 30);  // ten epochs
      for (size_t i = 0; i < mean.r1.values.size(); ++i) mean.r1.values[i] += rotations.r1.values[i] / 10;
      for (size_t i = 0; i < mean.r2.values.size(); ++i) mean.r2.values[i] += rotations.r2.values[i] / 10;
    }
    EXPECT_GT(distance_to_orthogonal(mean.r1), 0.02) << n;
    RecordProperty("distance_" + std::to_string(n), std::to_string(distance_to_orthogonal(mean.r1)));
    Rotations orthogonal = mean;
    orthogonal.r1 = polar_factor(mean.r1);
    orthogonal.r2 = polar_factor(mean.r2);
    for (Rotations* from : {&mean, &orthogonal}) from->improve(filters, 3);
    const double ratio = alignment(filters, mean) / alignment(filters, orthogonal);
    RecordProperty("ratio_" + std::to_string(n), std::to_string(ratio));
    EXPECT_NEAR(ratio, 1, 0.005) << n;
  }
}

// R1 first: the polar factor of sum (W R2) B', B the signs of R1' W R2, all of it in double precision but for
// the polar factor; then R2, that of sum (R1' W)' B.
Rotations by_plain_loops(const Filters& filters) {
  const size_t rows = filters.shape.rows;
  const size_t columns = filters.shape.columns;
  Rotations expected(filters.shape);
  std::vector<std::vector<double>> signs;
  for (size_t f = 0; f < filters.count; ++f) {
    signs.push_back(rotated(filters, f, expected));
    for (double& number : signs.back()) number = number >= 0 ? 1 : -1;
  }
  std::vector<double> inner(rows * rows);
  for (size_t f = 0; f < filters.count; ++f) {
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < columns; ++c) {
        double number = 0;  // (W R2)[r][c]
        for (size_t k = 0; k < columns; ++k)
          number += static_cast<double>(filters.filter(f)[r * filters.stride + k]) * expected.r2.row(k)[c];
        for (size_t s = 0; s < rows; ++s) inner[r * rows + s] += number * signs[f][s * columns + c];
      }
    }
  }
  Matrix of_rows(rows, rows);
  for (size_t i = 0; i < rows * rows; ++i) of_rows.row(i / rows)[i % rows] = static_cast<float>(inner[i]);
  expected.r1 = polar_factor(of_rows);
  inner.assign(columns * columns, 0);
  for (size_t f = 0; f < filters.count; ++f) {
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < columns; ++c) {
        double number = 0;  // (R1' W)[r][c]
        for (size_t k = 0; k < rows; ++k)
          number += static_cast<double>(expected.r1.row(k)[r]) * filters.filter(f)[k * filters.stride + c];
        for (size_t d = 0; d < columns; ++d) inner[c * columns + d] += number * signs[f][r * columns + d];
      }
    }
  }
  Matrix of_columns(columns, columns);
  for (size_t i = 0; i < columns * columns; ++i)
    of_columns.row(i / columns)[i % columns] = static_cast<float>(inner[i]);
  expected.r2 = polar_factor(of_columns);
  return expected;
}

TEST(RotationSearchTest, OneIterationIsThatOfPlainLoops) {
  for (const size_t n : kNumbers) {
    const Filters filters = random_filters(n > 1000 ? 10 : 60, n);
    const Rotations expected = by_plain_loops(filters);
    Rotations found(filters.shape);
    found.improve(filters, 1);
    for (size_t r = 0; r < expected.r1.rows; ++r) {
      for (size_t c = 0; c < expected.r1.rows; ++c)
        EXPECT_NEAR(found.r1.row(r)[c], expected.r1.row(r)[c], 0.01) << n;
    }
    for (size_t r = 0; r < expected.r2.rows; ++r) {
      for (size_t c = 0; c < expected.r2.rows; ++c)
        EXPECT_NEAR(found.r2.row(r)[c], expected.r2.row(r)[c], 0.01) << n;
    }
    EXPECT_NEAR(alignment(filters, found), alignment(filters, expected), 1e-3 * alignment(filters, expected))
        << n;
  }
}

// Sums are largest where a filter lies along a column of either rotation: nearly all of it comes to stand in
// one place, with either sign.
TEST(RotationSearchTest, NoSumIsTooLargeForItsInteger) {
  for (const size_t n : {288u, 576u, 4608u}) {
    Filters filters = random_filters(12, n);
    const Rotations start(filters.shape);
    for (size_t f = 0; f < 6; ++f) {
      const float length = (f % 2 == 0 ? 5 : -5) * std::sqrt(static_cast<float>(n));
      for (size_t r = 0; r < filters.shape.rows; ++r) {
        for (size_t c = 0; c < filters.shape.columns; ++c)
          filters.filter(f)[r * filters.stride + c] += length * start.r1.row(r)[f] * start.r2.row(c)[f + 1];
      }
    }
    const Rotations expected = by_plain_loops(filters);
    Rotations found(filters.shape);
    found.improve(filters, 1);
    EXPECT_NEAR(alignment(filters, found), alignment(filters, expected), 5e-3 * alignment(filters, expected))
        << n;
  }
}

// Means of rotations may be longer than rotations, and averages are shorter.
TEST(RotationSearchTest, TakesMatricesThatAreNoRotations) {
  const Filters filters = random_filters(40, 288);
  for (const float factor : {0.01f, 7.0f}) {
    Rotations rotations(filters.shape);
    Rotations exact(filters.shape);
    for (size_t i = 0; i < rotations.r1.values.size(); ++i) rotations.r1.values[i] *= factor;
    rotations.improve(filters, 1);
    exact.improve(filters, 1);
    EXPECT_LT(distance_to_orthogonal(rotations.r1), 1e-4);
    EXPECT_NEAR(alignment(filters, rotations), alignment(filters, exact), 2e-3 * alignment(filters, exact));
  }
}

TEST(RotationSearchTest, NothingComesOfFiltersThatAreNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Filters filters = random_filters(20, 288);
    filters.filter(3)[5] = bad;
    Rotations rotations(filters.shape);
    rotations.improve(filters, 3);
    EXPECT_LT(distance_to_orthogonal(rotations.r1), 1e-4);
    EXPECT_LT(distance_to_orthogonal(rotations.r2), 1e-4);
  }
}

TEST(RotationSearchTest, ZerosAreLeftWhereTheyAre) {
  Rotations rotations(FilterShape(288));
  rotations.improve(Filters(16, 288), 2);
  EXPECT_LT(distance_to_orthogonal(rotations.r1), 1e-4);
}

}  // namespace
}  // namespace bitfed
