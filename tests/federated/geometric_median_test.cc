#include "bitfed/federated/arithmetic/geometric_median.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bitfed/base/hash/random.h"
#include "bitfed/federated/arithmetic/client_mean.h"

namespace bitfed {
namespace {

TensorValues median_of(const std::vector<TensorValues>& models, const std::vector<bool>& learned,
                       const TensorValues& start) {
  std::vector<const TensorValues*> pointers;
  for (const TensorValues& model : models) pointers.push_back(&model);
  return geometric_median(pointers, learned, start);
}

// The Fermat point of an equilateral triangle is its centre; of a triangle with an angle of 120° or more,
// that corner; of four corners of a convex quadrangle, where its diagonals cross.
TEST(GeometricMedian, ByHand) {
  const auto height = static_cast<float>(std::sqrt(3.0));
  const TensorValues centre = median_of({{{0, 0}}, {{2, 0}}, {{1, height}}}, {true}, {{0.3f, 0.2f}});
  EXPECT_NEAR(centre[0][0], 1, 1e-4);
  EXPECT_NEAR(centre[0][1], height / 3, 1e-4);
  const TensorValues corner = median_of({{{-3, 0}}, {{3, 0}}, {{0, 0.5f}}}, {true}, {{1, 1}});
  EXPECT_NEAR(corner[0][0], 0, 1e-3);
  EXPECT_NEAR(corner[0][1], 0.5, 1e-3);
  const TensorValues crossing =
      median_of({{{0}, {0}}, {{4}, {4}}, {{3}, {1}}, {{0}, {4}}}, {true, true}, {{1}, {1}});
  EXPECT_NEAR(crossing[0][0], 2, 1e-3);
  EXPECT_NEAR(crossing[1][0], 2, 1e-3);
}

TEST(GeometricMedian, StatisticsFollowTheWeights) {
  // The learned tensors are alike, so that all weigh the same.
  const TensorValues found = median_of({{{1}, {10}}, {{1}, {20}}, {{1}, {60}}}, {true, false}, {{1}, {0}});
  EXPECT_EQ(found, (TensorValues{{1}, {30}}));
}

TEST(GeometricMedian, AMinorityThatIsFarAwayHardlyMovesIt) {
  RandomStream random({3, "geometric"});
  for (const float far : {10.0f, 1e6f}) {
    ClientMean mean({.kind = Combining::Kind::kGeometricMedian}, {true});
    const std::vector<float> start(20, 0.0f);
    for (uint32_t client = 0; client < 20; ++client) {
      std::vector<float> values(20);
      for (float& value : values) value = client < 6 ? far : static_cast<float>(random.uniform() - 0.5);
      mean.add(client, {values}, 1, {start});
    }
    const TensorValues found = mean.take();
    for (const float value : found[0]) EXPECT_LT(std::abs(value), 0.5f) << far;
  }
}

TEST(GeometricMedian, OrderOfArrivalCannotMatter) {
  RandomStream random({4, "geometric"});
  std::vector<TensorValues> models(9, TensorValues{std::vector<float>(30), std::vector<float>(3)});
  for (TensorValues& model : models) {
    for (std::vector<float>& tensor : model) {
      for (float& value : tensor) value = static_cast<float>(random.uniform());
    }
  }
  const TensorValues zero = {std::vector<float>(30), std::vector<float>(3)};
  ClientMean up({.kind = Combining::Kind::kGeometricMedian}, {true, false});
  ClientMean down({.kind = Combining::Kind::kGeometricMedian}, {true, false});
  for (uint32_t i = 0; i < 9; ++i) {
    up.add(i, models[i], 1 + i, zero);
    down.add(8 - i, models[8 - i], 1, zero);
  }
  EXPECT_EQ(up.take(), down.take());
}

}  // namespace
}  // namespace bitfed
