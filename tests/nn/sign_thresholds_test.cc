#include "bitfed/nn/binary/sign_thresholds.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>

#include "bitfed/base/hash/random.h"
#include "bitfed/nn/kernels/kernels.h"

namespace bitfed {
namespace {

// A sum through the layers' own kernels; sums and factors are repeated to fill kLanes.
bool reaches(float sum, float factor, float offset, float mean) {
  alignas(64) float x[kLanes], factors[kLanes], offsets[kLanes], out[kLanes];
  for (size_t i = 0; i < kLanes; ++i) {
    x[i] = sum;
    factors[i] = factor;
    offsets[i] = offset;
  }
  neural_kernels().affine(x, 1, kLanes, factors, offsets, Activation::kHardtanh, out);
  neural_kernels().signs(out, kLanes, mean, out);
  return out[0] == 1;
}

FoldedNorm some_norm(RandomStream random) {
  FoldedNorm norm;
  for (int i = 0; i < 60; ++i) {
    norm.factor.push_back(static_cast<float>(0.1 * random.normal()));
    norm.offset.push_back(static_cast<float>(random.normal()));
  }
  norm.factor[3] = 0;
  norm.factor[4] = 1e-30f;
  norm.factor[5] = 1e30f;
  norm.factor[6] = 0.125f;  // reaches the mean exactly
  norm.offset[6] = 0.25f;
  return norm;
}

const float kMeans[] = {0, 0.25f, -0.3f, 1, -1, 1.5f, -7};

TEST(SignThresholds, WholeOnesAreThoseOfEverySum) {
  constexpr int32_t kMost = 144;
  const FoldedNorm norm = some_norm(RandomStream({1, "norm"}));
  for (const float mean : kMeans) {
    const std::vector<int32_t> thresholds = whole_thresholds(norm, mean, kMost);
    for (size_t i = 0; i < norm.factor.size(); ++i) {
      for (int32_t sum = -kMost; sum <= kMost; ++sum) {
        // Negated, a unit with a negative factor has the negative sum.
        const float own = static_cast<float>(norm.factor[i] < 0 ? -sum : sum);
        EXPECT_EQ(sum >= thresholds[i], reaches(own, norm.factor[i], norm.offset[i], mean))
            << norm.factor[i] << " " << norm.offset[i] << " " << mean << " " << sum;
      }
      EXPECT_GE(thresholds[i], -kMost);
      EXPECT_LE(thresholds[i], kMost + 1);
    }
  }
}

TEST(SignThresholds, RealOnesAreTheLeastFloats) {
  const FoldedNorm norm = some_norm(RandomStream({2, "norm"}));
  for (const float mean : kMeans) {
    const std::vector<float> thresholds = real_thresholds(norm, mean);
    for (size_t i = 0; i < norm.factor.size(); ++i) {
      const float min = thresholds[i];
      const auto on = [&](float sum) {
        return reaches(norm.factor[i] < 0 ? -sum : sum, norm.factor[i], norm.offset[i], mean);
      };
      EXPECT_TRUE(min == FLT_MAX || on(min)) << i << " " << mean;
      EXPECT_TRUE(min == -FLT_MAX || !on(std::nextafter(min, -FLT_MAX))) << i << " " << mean;
    }
  }
}

TEST(SignThresholds, ByHand) {
  const FoldedNorm norm{{0.5f, -0.5f, 0, 0, 2}, {0.25f, 0.25f, 0.5f, 0.25f, 0}};
  // 0.5 s + 0.25 >= 0.5 from s = 0.5 on.
  EXPECT_EQ(whole_thresholds(norm, 0.5f, 9), (std::vector<int32_t>{1, 1, -9, 10, 1}));
  // The float below 0.5 does it, too: 0.5 - 2^-26 lies midway between two floats, and is rounded to 0.5.
  const float half = 0.5f - 0x1p-25f;
  EXPECT_EQ(real_thresholds(norm, 0.5f), (std::vector<float>{half, half, -FLT_MAX, FLT_MAX, 0.25f}));
}

}  // namespace
}  // namespace bitfed
