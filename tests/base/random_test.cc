#include "bitfed/base/hash/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

namespace bitfed {
namespace {

constexpr int kSamples = 200000;

RandomStream stream(uint64_t seed) {
  return RandomStream({.seed = seed, .purpose = "random test"});
}

// Known answers from the file kat_vectors of the Random123 distribution (Salmon et al.).
TEST(Philox, KnownAnswers) {
  using Counter = std::array<uint32_t, 4>;
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

std::vector<uint64_t> first_draws(RandomStream random) {
  std::vector<uint64_t> draws(8);
  for (uint64_t& draw : draws) draw = random.next_u64();
  return draws;
}

TEST(RandomStream, SameKeySameDraws) {
  EXPECT_EQ(first_draws(stream(3)), first_draws(stream(3)));
  RandomStream moved = stream(3);
  moved.next_u32();
  RandomStream copy = moved;  // a copy takes the position along
  EXPECT_EQ(copy.next_u64(), moved.next_u64());
}

TEST(RandomStream, BlocksMakeItsDraws) {
  RandomStream stream = RandomStream({.seed = 7, .purpose = "test"}).substream(3);
  const RandomStream::Blocks from = stream.blocks();
  for (size_t i = 0; i < 100; ++i) {
    const uint64_t position = from.position + i / 4;
    const auto block = philox4x32({static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32),
                                   static_cast<uint32_t>(from.lane), static_cast<uint32_t>(from.lane >> 32)},
                                  from.key);
    EXPECT_EQ(stream.next_u32(), block[i % 4]);
  }
  EXPECT_EQ(stream.blocks().position, from.position + 25);
}

TEST(RandomStream, EveryPartOfTheKeyMatters) {
  std::set<std::vector<uint64_t>> seen;
  const uint64_t far = uint64_t{1} << 40;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, far}) {
    for (const char* purpose : {"", "a", "b", "ab"}) {
      for (const uint64_t round : {uint64_t{0}, uint64_t{1}, far}) {
        for (const uint64_t client : {uint64_t{0}, uint64_t{1}, far}) {
          seen.insert(first_draws(RandomStream({seed, purpose, round, client})));
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), 3u * 4 * 3 * 3);
}

TEST(RandomStream, SubstreamsDifferAndIgnoreThePosition) {
  RandomStream parent = stream(4);
  std::set<std::vector<uint64_t>> seen = {first_draws(parent)};
  for (uint64_t index = 0; index < 100; ++index) {
    seen.insert(first_draws(parent.substream(index)));
    seen.insert(first_draws(parent.substream(index).substream(0)));
  }
  EXPECT_EQ(seen.size(), 201u);
  const auto before = first_draws(parent.substream(7));
  parent.next_u64();
  EXPECT_EQ(first_draws(parent.substream(7)), before);
}

// Neighbouring substreams must not move together: correlations of n pairs have a deviation of 1/sqrt(n).
TEST(RandomStream, SubstreamsAreUncorrelated) {
  const RandomStream parent = stream(5);
  for (uint64_t index = 0; index < 10; ++index) {
    RandomStream a = parent.substream(index);
    RandomStream b = parent.substream(index + 1);
    double sum = 0;
    for (int i = 0; i < kSamples; ++i) sum += (a.uniform() - 0.5) * (b.uniform() - 0.5);
    EXPECT_LT(std::abs(12 * sum / kSamples), 5 / std::sqrt(kSamples));
  }
}

struct Moments {
  double mean = 0;
  double variance = 0;
  double smallest = 0;
  double largest = 0;
};

template <typename Draw>
Moments moments(Draw draw) {
  std::vector<double> values(kSamples);
  std::generate(values.begin(), values.end(), draw);
  Moments result;
  result.mean = std::accumulate(values.begin(), values.end(), 0.0) / kSamples;
  for (const double value : values)
    result.variance += (value - result.mean) * (value - result.mean) / kSamples;
  result.smallest = *std::min_element(values.begin(), values.end());
  result.largest = *std::max_element(values.begin(), values.end());
  return result;
}

// `fourth` is the fourth central moment, which gives the deviation of the sample's variance.
void expect_moments(const Moments& found, double mean, double variance, double fourth) {
  EXPECT_LT(std::abs(found.mean - mean), 5 * std::sqrt(variance / kSamples));
  EXPECT_LT(std::abs(found.variance - variance), 5 * std::sqrt((fourth - variance * variance) / kSamples));
}

TEST(RandomStream, UniformMoments) {
  RandomStream random = stream(6);
  const Moments found = moments([&] { return random.uniform(); });
  expect_moments(found, 0.5, 1.0 / 12, 1.0 / 80);
  EXPECT_GE(found.smallest, 0);
  EXPECT_LT(found.largest, 1);
}

TEST(RandomStream, NormalMoments) {
  RandomStream random = stream(7);
  expect_moments(moments([&] { return random.normal(); }), 0, 1, 3);
}

TEST(RandomStream, GammaMoments) {
  for (const double shape : {0.05, 0.5, 1.0, 3.0}) {
    RandomStream random = stream(8);
    const Moments found = moments([&] { return random.gamma(shape); });
    expect_moments(found, shape, shape, 3 * shape * shape + 6 * shape);
    EXPECT_GE(found.smallest, 0);
  }
}

TEST(RandomStream, BelowIsUnbiased) {
  RandomStream random = stream(9);
  for (const uint32_t bound : {1u, 2u, 3u, 7u, 10u}) {
    std::vector<int> counts(bound);
    for (int i = 0; i < kSamples; ++i) ++counts.at(random.below(bound));
    const double p = 1.0 / bound;
    for (const int count : counts) {
      EXPECT_LE(std::abs(count - kSamples * p), 5 * std::sqrt(kSamples * p * (1 - p))) << "bound " << bound;
    }
  }
}

// Without rejection a bound of 3/4 of the range would draw every third value twice as often.
TEST(RandomStream, BelowIsUnbiasedForLargeBounds) {
  RandomStream random = stream(10);
  constexpr uint32_t kBound = 3u << 30;
  std::vector<int> counts(3);
  for (int i = 0; i < kSamples; ++i) {
    const uint32_t value = random.below(kBound);
    ASSERT_LT(value, kBound);
    ++counts[value % 3];
  }
  for (const int count : counts)
    EXPECT_LT(std::abs(count - kSamples / 3.0), 5 * std::sqrt(kSamples * 2 / 9.0));
}

TEST(RandomStream, ShuffleIsAPermutation) {
  for (const size_t size : {0, 1, 63, 1000}) {
    std::vector<size_t> items(size);
    std::iota(items.begin(), items.end(), size_t{0});
    const std::vector<size_t> sorted = items;
    stream(size).shuffle(std::span(items));
    EXPECT_EQ(items == sorted, size <= 2) << size << " items";
    std::sort(items.begin(), items.end());
    EXPECT_EQ(items, sorted);
  }
}

TEST(RandomStream, ShuffleReachesEveryOrderEvenly) {
  RandomStream random = stream(11);
  std::vector<int> counts(6);
  for (int i = 0; i < kSamples; ++i) {
    std::vector<int> items = {0, 1, 2};
    random.shuffle(std::span(items));
    ++counts[static_cast<size_t>(items[0] * 2 + (items[1] > items[2]))];
  }
  for (const int count : counts)
    EXPECT_LT(std::abs(count - kSamples / 6.0), 5 * std::sqrt(kSamples * 5 / 36.0));
}

}  // namespace
}  // namespace bitfed
