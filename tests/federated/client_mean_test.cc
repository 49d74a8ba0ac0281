#include "bitfed/federated/arithmetic/client_mean.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bitfed/base/hash/random.h"
#include "bitfed/base/thread_pool.h"
#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = Combining::Kind;

const TensorValues kZero = {{0, 0}, {0}};
const std::vector<bool> kBoth = {true, true};

TEST(ClientMeanTest, MeanBySamples) {
  ClientMean mean({}, kBoth);
  mean.add(7, {{1, 2}, {3}}, 3, kZero);
  mean.add(2, {{5, 2}, {-1}}, 1, kZero);
  EXPECT_EQ(mean.clients(), 2u);
  EXPECT_EQ(mean.samples(), 4u);
  EXPECT_EQ(mean.take(), (TensorValues{{2, 2}, {2}}));
  EXPECT_EQ(mean.clients(), 0u);
  EXPECT_EQ(mean.samples(), 0u);
}

// Threads are woken for what is worth it: all tensors and clients count together.
TEST(ClientMeanTest, ThreadsAreForManyValues) {
  ThreadPool pool(2);
  const std::vector<float> small(100), large(ExactMean::kGrain);
  EXPECT_EQ(pool_for({small, small}, 1, &pool), nullptr);
  EXPECT_EQ(pool_for({large}, 1, &pool), nullptr);
  EXPECT_EQ(pool_for({small, large}, 1, &pool), &pool);
  EXPECT_EQ(pool_for({small}, 1000, &pool), &pool);
  EXPECT_EQ(pool_for({large}, 2, nullptr), nullptr);
}

TEST(ClientMeanTest, WhereTheValuesLieMakesNoDifference) {
  const TensorValues first = {{31, 1}, {41}};
  const TensorValues second = {{5, 2}, {-1}};
  for (const Kind kind : {Kind::kMean, Kind::kMedian}) {
    for (const double bound : {0.0, 5.0}) {
      const Combining combining{.kind = kind, .norm_bound = bound, .max_samples = 4};
      ClientMean copied(combining, kBoth), viewed(combining, kBoth);
      copied.add(7, first, 9, kZero);
      copied.add(2, second, 1, kZero);
      const std::vector<ClientMean::Client> clients = {{7, {first.begin(), first.end()}, 9},
                                                       {2, {second.begin(), second.end()}, 1}};
      viewed.add_all(clients, kZero);
      EXPECT_EQ(viewed.clients(), copied.clients());
      EXPECT_EQ(viewed.samples(), copied.samples());
      EXPECT_EQ(viewed.take(), copied.take());
    }
  }
}

TEST(ClientMeanTest, PartsOfSeveralProcesses) {
  const Combining clipped{.norm_bound = 5};
  ClientMean whole(clipped, kBoth), here(clipped, kBoth), there(clipped, kBoth), idle(clipped, kBoth);
  const std::vector<TensorValues> clients = {{{1, 2}, {3}}, {{31, 1}, {41}}, {{-0.3f, 7}, {1e-6f}}};
  for (uint32_t i = 0; i < clients.size(); ++i) {
    whole.add(i, clients[i], 3 + i, kZero);
    (i == 1 ? there : here).add(i, clients[i], 3 + i, kZero);
  }
  here.add_part(there.take_part(), kZero);
  here.add_part(idle.take_part(), kZero);
  EXPECT_EQ(there.clients(), 0u);
  EXPECT_EQ(here.clients(), 3u);
  EXPECT_EQ(here.samples(), whole.samples());
  EXPECT_EQ(here.take(), whole.take());
  EXPECT_EQ(here.notes(), whole.notes());
  there.add(0, {{1}, {3}}, 1, {{0}, {0}});
  const State part = there.take_part();
  EXPECT_THAT(error_text([&] { here.add_part(part, kZero); }), HasSubstr("sums.0"));
  EXPECT_FALSE(ClientMean({.kind = Kind::kMedian}, kBoth).adds_up());
}

TEST(ClientMeanTest, ClaimedSamplesAreBounded) {
  ClientMean mean({.max_samples = 10}, kBoth);
  mean.add(0, {{0, 0}, {0}}, 10, kZero);
  mean.add(1, {{4, 4}, {4}}, 4000000000u, kZero);
  EXPECT_EQ(mean.take(), (TensorValues{{2, 2}, {2}}));
}

TEST(ClientMeanTest, MedianOfOddAndEven) {
  ClientMean median({.kind = Kind::kMedian}, kBoth);
  median.add(0, {{1, 5}, {9}}, 1, kZero);
  median.add(1, {{2, -5}, {9}}, 1000000, kZero);
  median.add(2, {{30, 0}, {8}}, 1, kZero);
  EXPECT_EQ(median.take(), (TensorValues{{2, 0}, {9}}));
  median.add(0, {{1, 5}, {9}}, 1, kZero);
  median.add(1, {{2, -5}, {7}}, 1, kZero);
  EXPECT_EQ(median.take(), (TensorValues{{1.5f, 0}, {8}}));
  median.add(3, {{1, 5}, {9}}, 1, kZero);
  EXPECT_EQ(median.take(), (TensorValues{{1, 5}, {9}}));
}

TEST(ClientMeanTest, TrimmedByHand) {
  ClientMean trimmed({.kind = Kind::kTrimmedMean, .trim = 0.25}, {true});
  const float values[] = {1e6f, 1, 2, 3, -1e6f, 4, 5, 6};  // two go at each end: 2, 3, 4, 5 stay
  for (uint32_t client = 0; client < 8; ++client) trimmed.add(client, {{values[client]}}, 1, {{0}});
  EXPECT_EQ(trimmed.take(), (TensorValues{{3.5f}}));
}

TEST(ClientMeanTest, AChangeIsShortenedInItsDirection) {
  ClientMean mean({.norm_bound = 5}, kBoth);
  mean.add(0, {{31, 1}, {41}}, 1, {{1, 1}, {1}});  // 30 and 40: a length of 50
  EXPECT_EQ(mean.take(), (TensorValues{{4, 1}, {5}}));
  ClientMean statistics({.norm_bound = 3}, {true, false});
  statistics.add(0, {{31, 1}, {41}}, 1, {{1, 1}, {1}});  // 30 counts, 40 goes with it
  EXPECT_EQ(statistics.take(), (TensorValues{{4, 1}, {5}}));
  mean.add(0, {{4, 1}, {5}}, 1, {{1, 1}, {1}});  // of length 5: as it is
  EXPECT_EQ(mean.take(), (TensorValues{{4, 1}, {5}}));
  mean.add(0, {{4, 1}, {5}}, 1, {{1, 1}, {1}});
  mean.add(1, {{1, 1}, {2}}, 1, {{1, 1}, {1}});
  mean.add(2, {{11, 1}, {1}}, 1, {{1, 1}, {1}});
  mean.take();
  EXPECT_THAT(mean.notes(),
              ElementsAre("norm bound 5: in the last round 1 of 3 updates were clipped; their norms were "
                          "1 to 10, median 5"));
  EXPECT_THAT(ClientMean({}, kBoth).notes(), ElementsAre());
}

// With fewer than half of the clients hostile, every number lies between two honest ones.
TEST(ClientMeanTest, AHostileMinorityMovesTheMeanAndNotTheMedian) {
  RandomStream random({1, "hostile"});
  const size_t numbers = 200;
  for (const Kind kind : {Kind::kMean, Kind::kMedian, Kind::kTrimmedMean}) {
    ClientMean combined({.kind = kind, .trim = 0.4}, {true});
    std::vector<float> least(numbers, 1e9f);
    std::vector<float> most(numbers, -1e9f);
    for (uint32_t client = 0; client < 10; ++client) {
      std::vector<float> values(numbers);
      for (size_t i = 0; i < numbers; ++i) {
        values[i] = static_cast<float>(random.normal());
        if (client % 3 == 1) values[i] = client == 4 ? 1e6f : -3e5f;  // 1, 4 and 7
        if (client % 3 == 1) continue;
        least[i] = std::min(least[i], values[i]);
        most[i] = std::max(most[i], values[i]);
      }
      combined.add(client, {values}, 1, {std::vector<float>(numbers)});
    }
    const TensorValues result = combined.take();
    size_t outside = 0;
    for (size_t i = 0; i < numbers; ++i) outside += result[0][i] < least[i] || result[0][i] > most[i] ? 1 : 0;
    EXPECT_EQ(outside, kind == Kind::kMean ? numbers : 0u);
  }
}

TEST(ClientMeanTest, OrderCannotMatter) {
  RandomStream random({2, "order"});
  std::vector<std::pair<uint32_t, std::vector<float>>> clients;
  for (uint32_t client = 0; client < 9; ++client) {
    clients.emplace_back(client, std::vector<float>(30));
    for (float& value : clients.back().second) value = static_cast<float>(random.normal());
  }
  for (const Kind kind : {Kind::kMean, Kind::kMedian, Kind::kTrimmedMean}) {
    const auto combined = [&] {
      ClientMean mean({.kind = kind, .trim = 0.2, .norm_bound = 3}, {true});
      for (const auto& [client, values] : clients)
        mean.add(client, {values}, client + 1, {std::vector<float>(30)});
      return mean.take();
    };
    const TensorValues before = combined();
    random.shuffle(std::span(clients));
    EXPECT_EQ(combined(), before);
  }
}

TEST(ClientMeanTest, TooManySamplesAreRefusedAndLeaveItAsItWas) {
  ClientMean mean({}, {true});
  const TensorValues large = {{ExactMean::kLargest}};
  for (uint32_t client = 0; client < 256; ++client) mean.add(client, large, UINT32_MAX, {{0}});
  EXPECT_THAT(error_text([&] { mean.add(256, {{1}}, UINT32_MAX, {{0}}); }), HasSubstr("sum up to more than"));
  EXPECT_EQ(mean.clients(), 256u);
  EXPECT_EQ(mean.take(), large);
}

Combining read(const std::string& recipe) {
  const Config config = Config::parse(recipe, "recipe.toml");
  Combining combining = read_combining(config);
  config.reject_unknown_keys();
  return combining;
}

TEST(ClientMeanTest, Read) {
  EXPECT_EQ(read("").kind, Kind::kMean);
  EXPECT_EQ(read("").norm_bound, 0);
  const Combining trimmed =
      read("[federation]\ncombine = \"trimmed-mean\"\ntrim = 0.3\nnorm_bound = 2.5\nmost_samples = 600\n");
  EXPECT_EQ(trimmed.kind, Kind::kTrimmedMean);
  EXPECT_EQ(trimmed.trim, 0.3);
  EXPECT_EQ(trimmed.norm_bound, 2.5);
  EXPECT_EQ(trimmed.max_samples, 600u);
  EXPECT_EQ(read("[federation]\nmax_samples = 700\n").max_samples, 700u);  // its new name
  EXPECT_THAT(error_text([] { read("[federation]\nmax_samples = 7\nmost_samples = 6\n"); }),
              HasSubstr("most_samples"));
  EXPECT_EQ(read("[federation]\ncombine = \"median\"\n").kind, Kind::kMedian);
  const Combining geometric = read("[federation]\ncombine = \"geometric-median\"\n");
  EXPECT_EQ(geometric.kind, Kind::kGeometricMedian);
  EXPECT_EQ(preparation_combining(geometric).kind, Kind::kMedian);  // single values have no direction
  EXPECT_THAT(error_text([] { read("[federation]\ncombine = \"medain\"\n"); }), HasSubstr("median"));
  EXPECT_THAT(error_text([] { read("[federation]\ntrim = 0.3\n"); }), HasSubstr("trim"));
  EXPECT_THAT(error_text([] { read("[federation]\ncombine = \"trimmed-mean\"\ntrim = 0.5\n"); }),
              HasSubstr("0.499"));
}

}  // namespace
}  // namespace bitfed
