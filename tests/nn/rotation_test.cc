#include "bitfed/nn/rotated/rotation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/nn/some_rotations.h"

namespace bitfed {
namespace {

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
        Matrix rotated = best;
        for (size_t r = 0; r < 8; ++r) {
          rotated.row(r)[i] =
              static_cast<float>(std::cos(angle) * best.row(r)[i] + std::sin(angle) * best.row(r)[j]);
          rotated.row(r)[j] =
              static_cast<float>(std::cos(angle) * best.row(r)[j] - std::sin(angle) * best.row(r)[i]);
        }
        EXPECT_LT(inner(rotated), inner(best));
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
  FilterRotation rotation(288);
  Filters rotated = filters;
  Filters back = filters;
  rotation.take(r1, r2, false);
  for (size_t f = 0; f < filters.count; ++f) rotation.rotate(filters.filter(f), rotated.filter(f));
  // One element by hand: (R1' W R2)[2][3].
  double expected = 0;
  for (size_t i = 0; i < 18; ++i) {
    for (size_t j = 0; j < 16; ++j)
      expected +=
          static_cast<double>(r1.row(i)[2]) * filters.filter(4)[i * filters.stride + j] * r2.row(j)[3];
  }
  EXPECT_NEAR(rotated.filter(4)[2 * rotated.stride + 3], expected, 5e-4);
  rotation.take(r1, r2, true);
  for (size_t f = 0; f < filters.count; ++f) rotation.rotate(rotated.filter(f), back.filter(f));
  for (size_t r = 0; r < 18; ++r) {
    for (size_t c = 0; c < 16; ++c) {
      const size_t at = r * filters.stride + c;
      EXPECT_NEAR(back.filter(3)[at], filters.filter(3)[at], 1e-3);
    }
  }
}

// What is farthest from 1: a rotation that is stretched, a filter that fills the range in one direction, and
// one of zeros.
TEST(RotationTest, ExtremesStayInRange) {
  Filters filters(2, 16 * 16);
  Matrix left(16, 16);
  Matrix right(16, 16);
  for (size_t r = 0; r < 16; ++r) {
    for (size_t c = 0; c < 16; ++c) {
      // Columns of a Hadamard matrix, times 3: all their values are as large as the largest.
      left.row(r)[c] = right.row(r)[c] = (__builtin_popcountll(r & c) % 2 == 0 ? 1 : -1) * 0.75f;
      filters.filter(0)[r * filters.stride + c] = 1e6f;
    }
  }
  FilterRotation rotation(16 * 16);
  Filters rotated = filters;
  for (const bool back : {false, true}) {
    rotation.take(left, right, back);
    for (size_t f = 0; f < 2; ++f) rotation.rotate(filters.filter(f), rotated.filter(f));
    EXPECT_NEAR(rotated.filter(0)[0], 1e6 * 16 * 16 * 0.75 * 0.75, 1e5);
    EXPECT_NEAR(rotated.filter(0)[1], 0, 1e5);
    for (size_t i = 0; i < 16 * 16; ++i) EXPECT_EQ(rotated.filter(1)[i], 0);
  }
}

}  // namespace
}  // namespace bitfed
