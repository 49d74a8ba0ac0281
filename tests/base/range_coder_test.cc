#include "bitfed/base/range_coder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bitfed/base/hash/random.h"

namespace bitfed {
namespace {

TEST(RangeCoderTest, AContextLearnsTheMeanOfItsDecisions) {
  AdaptiveBit bit;
  EXPECT_EQ(bit.probability(), 32768u);
  bit.learn(true);
  EXPECT_EQ(bit.probability(), 32768u + (65520 - 32768) / 2);
  RandomStream random({1, "learn"});
  for (int i = 0; i < 2000; ++i) bit.learn(random.uniform() < 0.2);
  EXPECT_NEAR(bit.probability() / 65536.0, 0.2, 0.06);
  for (int i = 0; i < 20000; ++i) bit.learn(true);
  EXPECT_LE(bit.probability(), 65520u);
  for (int i = 0; i < 20000; ++i) bit.learn(false);
  EXPECT_GE(bit.probability(), 16u);
}

// Without contexts a decision is a bit: yes takes the lower half, so "no" is written as a one.
TEST(RangeCoderTest, EvenDecisionsAreBits) {
  RangeEncoder encoder;
  for (const bool decision : {false, true, false, false, true, true, false, true}) encoder.code(decision);
  const Bytes bytes = encoder.finish();
  ASSERT_EQ(bytes.size(), 8u);
  // 10110010 less what is lost below 2^16 of the range, which begins at 2^64 - 1.
  EXPECT_EQ(bytes[0], 0b10110001);
  EXPECT_EQ(bytes[1], 0xff);
}

struct Source {
  double probability;
  size_t count;
};

class RangeCoderSourceTest : public testing::TestWithParam<Source> {};

// What comes out is what went in, and its size is the entropy.
TEST_P(RangeCoderSourceTest, RoundTripNearTheEntropy) {
  const auto [probability, count] = GetParam();
  RandomStream random({2, "source"});
  std::vector<bool> decisions;
  for (size_t i = 0; i < count; ++i) decisions.push_back(random.uniform() < probability);
  RangeEncoder encoder;
  AdaptiveBit written;
  for (const bool decision : decisions) encoder.code(decision, written);
  const Bytes bytes = encoder.finish();

  RangeDecoder decoder(bytes);
  AdaptiveBit read;
  for (size_t i = 0; i < count; ++i) ASSERT_EQ(decoder.code(false, read), decisions[i]) << i;
  EXPECT_TRUE(decoder.at_end());
  if (count < 10000) return;
  const double entropy =
      -probability * std::log2(probability) - (1 - probability) * std::log2(1 - probability);
  EXPECT_NEAR(static_cast<double>(bytes.size()), entropy * static_cast<double>(count) / 8,
              0.02 * entropy * static_cast<double>(count) / 8);
}

INSTANTIATE_TEST_SUITE_P(Sources, RangeCoderSourceTest,
                         testing::Values(Source{0.5, 100000}, Source{0.9, 100000}, Source{0.05, 200000},
                                         Source{0.5, 0}, Source{0.3, 1}, Source{0.3, 77}));

// All in the upper part: carries run through bytes that are all ones.
TEST(RangeCoderTest, CarriesRunThrough) {
  for (size_t likely = 0; likely < 300; ++likely) {
    RangeEncoder encoder;
    AdaptiveBit written;
    for (size_t i = 0; i < likely; ++i) encoder.code(false, written);
    for (size_t i = 0; i < 40; ++i) encoder.code(i % 3 == 0, written);
    const Bytes bytes = encoder.finish();
    RangeDecoder decoder(bytes);
    AdaptiveBit read;
    for (size_t i = 0; i < likely; ++i) ASSERT_FALSE(decoder.code(false, read));
    for (size_t i = 0; i < 40; ++i) ASSERT_EQ(decoder.code(false, read), i % 3 == 0) << likely;
    ASSERT_TRUE(decoder.at_end());
  }
}

TEST(RangeCoderTest, ReadingBehindTheEndIsNoticed) {
  RangeDecoder decoder({});
  for (int i = 0; i < 100; ++i) decoder.code(false);
  EXPECT_FALSE(decoder.at_end());
}

}  // namespace
}  // namespace bitfed
