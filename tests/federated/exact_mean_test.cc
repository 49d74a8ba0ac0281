#include "bitfed/federated/arithmetic/exact_mean.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "bitfed/base/hash/random.h"
#include "bitfed/base/thread_pool.h"
#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ExactMeanTest, WeightedByHand) {
  ExactMean mean;
  EXPECT_TRUE(mean.empty());
  mean.add(std::vector<float>{1, -2, 0.5f}, 3);
  mean.add(std::vector<float>{5, 2, 0.5f}, 1);
  EXPECT_EQ(mean.weight(), 4u);
  EXPECT_THAT(mean.mean(), ElementsAre(2, -1, 0.5f));
}

// In units of 2^-64, to the nearest, ties to even.
TEST(ExactMeanTest, SumsAreTheRoundedValuesTimesTheWeight) {
  std::vector<float> values = {0,          -0.0f,       0x1p-65f, -0x1p-65f, 0x1.8p-64f, -0x1.8p-64f,
                               0x1.4p-63f, 0x1p-64f,    0x1p-41f, 0.5f,      -0.5f,      0x1.fffffep-2f,
                               4194304.0f, -4194304.0f, 1e-38f,   0x1p-12f,  0x1p-13f,   0x1.000002p-41f};
  RandomStream random({4, "exact"});
  for (int i = 0; i < 10000; ++i)
    values.push_back(static_cast<float>(std::ldexp(random.normal(), -static_cast<int>(random.below(80)))));
  constexpr uint32_t kWeight = 4'000'000'007;
  __extension__ typedef __int128 Sum;
  const auto expect_sums = [&] {
    ExactMean mean;
    mean.add(values, kWeight);
    ASSERT_EQ(mean.sums().size(), values.size() * sizeof(Sum));
    for (size_t i = 0; i < values.size(); ++i) {
      Sum sum = 0;
      std::memcpy(&sum, mean.sums().data() + i * sizeof sum, sizeof sum);
      const Sum expected =
          static_cast<Sum>(std::rint(std::ldexp(static_cast<double>(values[i]), 64))) * kWeight;
      ASSERT_TRUE(sum == expected) << values[i];
    }
  };
  expect_sums();
  std::erase_if(values,
                [](float value) { return std::fabs(value) >= 0.5f; });  // small ones have a way of their own
  expect_sums();
}

TEST(ExactMeanTest, ThreadsCannotMatter) {
  ThreadPool pool(3);
  RandomStream random({3, "exact"});
  ExactMean alone;
  ExactMean together;
  for (uint32_t weight = 1; weight < 4; ++weight) {
    std::vector<float> values(100'003);  // several threads' shares, and a rest
    for (float& value : values) value = static_cast<float>(random.normal());
    alone.add(values, weight);
    together.add(values, weight, &pool);
  }
  EXPECT_EQ(together.mean(&pool), alone.mean());
}

TEST(ExactMeanTest, OrderCannotMatter) {
  RandomStream random({1, "exact"});
  std::vector<std::pair<std::vector<float>, uint32_t>> clients;
  for (int i = 0; i < 50; ++i) {
    std::vector<float> values;
    for (int j = 0; j < 20; ++j)
      values.push_back(static_cast<float>(random.normal() * std::pow(10, j % 9 - 5)));
    clients.emplace_back(values, 1 + random.below(100000));
  }
  const auto mean = [&] {
    ExactMean sum;
    for (const auto& [values, weight] : clients) sum.add(values, weight);
    return sum.mean();
  };
  const std::vector<float> forward = mean();
  std::reverse(clients.begin(), clients.end());
  EXPECT_EQ(mean(), forward);
  random.shuffle(std::span(clients));
  EXPECT_EQ(mean(), forward);
}

TEST(ExactMeanTest, SumsOfSeveralProcesses) {
  const std::vector<std::vector<float>> values = {{1, -2e-11f}, {0.1f, 3e6f}, {-7, 1e-9f}, {0.3f, -0.7f}};
  ExactMean all, first, second;
  for (uint32_t i = 0; i < values.size(); ++i) {
    all.add(values[i], i + 3);
    (i % 2 == 0 ? first : second).add(values[i], i + 3);
  }
  EXPECT_EQ(first.sums().size(), 2 * ExactMean::kSumBytes);
  ExactMean merged;
  merged.add_sums(second.sums(), second.weight());
  merged.add_sums(first.sums(), first.weight());
  EXPECT_EQ(merged.mean(), all.mean());
  EXPECT_EQ(merged.weight(), all.weight());
}

TEST(ExactMeanTest, SumsThatCannotBe) {
  ExactMean sum;
  sum.add(std::vector<float>{ExactMean::kLargest, -ExactMean::kLargest}, 5);
  ExactMean other;
  EXPECT_THAT(error_text([&] { other.add_sums(sum.sums().first(17), 5); }), HasSubstr("found 17 bytes"));
  EXPECT_THAT(error_text([&] { other.add_sums(sum.sums(), 0); }), HasSubstr("of weight 0"));
  EXPECT_THAT(error_text([&] { other.add_sums(sum.sums(), 4); }), HasSubstr("times its weight, 4"));
  EXPECT_THAT(error_text([&] { other.add_sums(sum.sums(), UINT64_MAX); }), HasSubstr("sum up to more than"));
  ExactMean three;
  three.add(std::vector<float>{1, 2, 3}, 1);
  EXPECT_THAT(error_text([&] { three.add_sums(sum.sums(), 5); }), HasSubstr("expected 48"));
  ExactMean right;
  right.add_sums(sum.sums(), 5);
  EXPECT_EQ(right.mean(), sum.mean());
}

TEST(ExactMeanTest, NearestDouble) {
  using Sum = ExactMean::Sum;
  RandomStream random({5, "exact"});
  const auto word = [&] { return static_cast<Sum>(random.next_u64()); };
  std::vector<Sum> sums = {0,
                           1,
                           Sum{1} << 53,
                           (Sum{1} << 53) + 1,
                           (Sum{3} << 53) + 3,
                           (Sum{1} << 104) - 1,
                           Sum{1} << 104,
                           (Sum{1} << 126) - 1};
  for (int i = 0; i < 100'000; ++i) {
    const Sum sum = ((word() << 64) | word()) >> (1 + random.below(126));
    // Half of them end in zeros: ties.
    sums.push_back(i % 2 == 0 ? sum : sum >> random.below(64) << random.below(64));
  }
  for (const Sum sum : sums) {
    ASSERT_EQ(nearest_double(sum), static_cast<double>(sum));
    ASSERT_EQ(nearest_double(-sum), static_cast<double>(-sum));
  }
}

TEST(ExactMeanTest, LargestValuesAndWeights) {
  ExactMean mean;
  const std::vector<float> values = {ExactMean::kLargest, -ExactMean::kLargest};
  for (int i = 0; i < 256; ++i) mean.add(values, UINT32_MAX);
  EXPECT_EQ(mean.mean(), values);
  EXPECT_THAT(error_text([&] { mean.add(values, UINT32_MAX); }), HasSubstr("sum up to more than"));
}

TEST(ExactMeanTest, OfOneIsItself) {
  ExactMean mean;
  const std::vector<float> values = {0.1f, -3.25f, 1e-4f, 123.456f, 7.7e-12f, -4194304.0f};
  mean.add(values, 7);
  EXPECT_EQ(mean.mean(), values);
}

TEST(ExactMeanTest, WhatFits) {
  EXPECT_TRUE(ExactMean::fits(std::vector<float>{0, -1, ExactMean::kLargest}));
  EXPECT_FALSE(ExactMean::fits(std::vector<float>{ExactMean::kLargest * 2}));
  EXPECT_FALSE(ExactMean::fits(std::vector<float>{std::numeric_limits<float>::quiet_NaN()}));
  EXPECT_FALSE(ExactMean::fits(std::vector<float>{-std::numeric_limits<float>::infinity()}));
}

}  // namespace
}  // namespace bitfed
