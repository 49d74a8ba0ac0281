#include "bitfed/nn/rotation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bitfed/base/random.h"

namespace bitfed {
namespace {

Matrix random_matrix(size_t size, uint64_t seed) {
  RandomStream random({seed, "matrix"});
  Matrix matrix(size, size);
  for (size_t r = 0; r < size; ++r) {
    for (size_t c = 0; c < size; ++c) matrix.row(r)[c] = static_cast<float>(random.normal());
  }
  return matrix;
}

Filters random_filters(size_t count, size_t n) {
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

double distance_to_orthogonal(const Matrix& x) {
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

TEST(FilterShapeTest, TheLargestDivisorBelowTheRoot) {
  const auto shape = [](size_t n) { return std::pair(FilterShape(n).rows, FilterShape(n).columns); };
  EXPECT_EQ(shape(9), std::pair(size_t{3}, size_t{3}));
  EXPECT_EQ(shape(288), std::pair(size_t{18}, size_t{16}));
  EXPECT_EQ(shape(576), std::pair(size_t{24}, size_t{24}));
  EXPECT_EQ(shape(1152), std::pair(size_t{36}, size_t{32}));
  EXPECT_EQ(shape(27), std::pair(size_t{9}, size_t{3}));
  EXPECT_EQ(shape(13), std::pair(size_t{13}, size_t{1}));
}

// Q S with Q orthogonal and S symmetric positive has the polar factor Q: S = P P' + 0.1 I is such a one.
TEST(PolarFactorTest, FindsTheRotationInAProduct) {
  for (const size_t size : {1u, 2u, 3u, 16u, 33u}) {
    const Matrix q = polar_factor(random_matrix(size, 1));
    EXPECT_LT(distance_to_orthogonal(q), 1e-4);
    const Matrix p = random_matrix(size, 2);
    Matrix product(size, size);
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = 0; j < size; ++j) {
        double sum = 0;
        for (size_t k = 0; k < size; ++k) {
          double s = k == j ? 0.1 : 0;
          for (size_t l = 0; l < size; ++l) s += static_cast<double>(p.row(k)[l]) * p.row(j)[l];
          sum += q.row(i)[k] * s;
        }
        product.row(i)[j] = static_cast<float>(sum);
      }
    }
    const Matrix found = polar_factor(product);
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = 0; j < size; ++j) EXPECT_NEAR(found.row(i)[j], q.row(i)[j], 2e-3) << size;
    }
  }
}

// Of all orthogonal matrices the polar factor has the largest inner product with its matrix, the sum of the
// singular values: no nearby rotation does better.
TEST(PolarFactorTest, NoNearbyRotationIsNearer) {
  const Matrix m = random_matrix(8, 3);
  const auto inner = [&](const Matrix& x) {
    double sum = 0;
    for (size_t r = 0; r < 8; ++r) {
      for (size_t c = 0; c < 8; ++c) sum += static_cast<double>(m.row(r)[c]) * x.row(r)[c];
    }
    return sum;
  };
  const Matrix best = polar_factor(m);
  for (size_t i = 0; i < 8; ++i) {
    for (size_t j = 0; j < i; ++j) {
      for (const double angle : {0.05, -0.05}) {
        Matrix turned = best;
        for (size_t r = 0; r < 8; ++r) {
          turned.row(r)[i] =
              static_cast<float>(std::cos(angle) * best.row(r)[i] + std::sin(angle) * best.row(r)[j]);
          turned.row(r)[j] =
              static_cast<float>(std::cos(angle) * best.row(r)[j] - std::sin(angle) * best.row(r)[i]);
        }
        EXPECT_LT(inner(turned), inner(best));
      }
    }
  }
}

TEST(PolarFactorTest, OfNothingIsTheIdentity) {
  EXPECT_EQ(polar_factor(Matrix(3, 3)).row(1)[1], 1);
}

TEST(RotationTest, ThereAndBackIsTheSame) {
  const Filters filters = random_filters(5, 288);
  const Matrix r1 = polar_factor(random_matrix(18, 1));
  const Matrix r2 = polar_factor(random_matrix(16, 2));
  RotationWorkspace workspace(filters);
  Filters turned = filters;
  Filters back = filters;
  for_each_run(filters.count,
               [&](const FilterRun& run) { rotate(filters, run, r1, r2, &workspace, &turned); });
  // One element by hand: (R1' W R2)[2][3].
  double expected = 0;
  for (size_t i = 0; i < 18; ++i) {
    for (size_t j = 0; j < 16; ++j)
      expected +=
          static_cast<double>(r1.row(i)[2]) * filters.filter(4)[i * filters.stride + j] * r2.row(j)[3];
  }
  EXPECT_NEAR(turned.filter(4)[2 * turned.stride + 3], expected, 1e-5);
  prepare_way_back(r2, &workspace);
  for_each_run(filters.count, [&](const FilterRun& run) { rotate_back(turned, run, r1, &workspace, &back); });
  for (size_t r = 0; r < 18; ++r) {
    for (size_t c = 0; c < 16; ++c) {
      const size_t at = r * filters.stride + c;
      EXPECT_NEAR(back.filter(3)[at], filters.filter(3)[at], 1e-4);
    }
  }
}

// cos of the angle between the turned filters and their signs, up to a constant.
double alignment(const Filters& filters, const Matrix& r1, const Matrix& r2) {
  RotationWorkspace workspace(filters);
  Filters turned = filters;
  for_each_run(filters.count,
               [&](const FilterRun& run) { rotate(filters, run, r1, r2, &workspace, &turned); });
  double sum = 0;
  for (size_t f = 0; f < turned.count; ++f) {
    for (size_t r = 0; r < turned.shape.rows; ++r) {
      for (size_t c = 0; c < turned.shape.columns; ++c)
        sum += std::fabs(turned.filter(f)[r * turned.stride + c]);
    }
  }
  return sum;
}

TEST(RotationTest, EveryIterationBringsFiltersNearerToTheirSigns) {
  const Filters filters = random_filters(8, 288);
  Matrix r1 = polar_factor(random_matrix(18, 1));
  Matrix r2 = polar_factor(random_matrix(16, 2));
  RotationWorkspace workspace(filters);
  double before = alignment(filters, r1, r2);
  for (int i = 0; i < 5; ++i) {
    optimise_rotation(filters, 1, &workspace, &r1, &r2);
    const double after = alignment(filters, r1, r2);
    EXPECT_GT(after, before);
    before = after;
  }
  EXPECT_LT(distance_to_orthogonal(r1), 1e-4);
  EXPECT_LT(distance_to_orthogonal(r2), 1e-4);
}

}  // namespace
}  // namespace bitfed
