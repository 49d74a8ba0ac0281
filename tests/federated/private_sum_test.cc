#include "bitfed/federated/privacy/private_sum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DifferentialPrivacy privacy(double clip, double noise) {
  DifferentialPrivacy result;
  result.clip = clip;
  result.statistics_clip = 3 * clip;
  result.release = {noise, 1};
  return result;
}

UpdateGrid grid() {
  UpdateGrid result;
  result.bits = 10;
  result.range = 30;
  result.max_clients = 100;
  result.max_weight = 1;
  return result;
}

const SumParts kChanges = {{SumKind::kChange, 2}};
const SumParts kAll = {{SumKind::kVote, 4}, {SumKind::kChange, 2}, {SumKind::kPrecise, 1}};

TEST(PrivateSumTest, ClipsByHand) {
  const PrivateSum sum(privacy(1, 1), grid(), kChanges);
  ClientUpdate inside{kChanges, {0.6, -0.7}, 1};
  sum.clip(&inside);
  // Towards 0, to multiples of 2^-10: 614.4 and 716.8.
  EXPECT_THAT(inside.values, ElementsAre(614 / 1024.0, -716 / 1024.0));
  ClientUpdate outside{kChanges, {3, 4}, 1};
  sum.clip(&outside);
  EXPECT_THAT(outside.values, ElementsAre(614 / 1024.0, 819 / 1024.0));  // of 0.6 and 0.8
}

// Votes stay; changes and statistics are clipped each by their own norm.
TEST(PrivateSumTest, KindsAreBoundedByThemselves) {
  const PrivateSum sum(privacy(1, 4), grid(), kAll);
  ClientUpdate update{kAll, {1, -1, 1, 1, 30, 40, -100}, 1};
  sum.clip(&update);
  EXPECT_THAT(update.values, ElementsAre(1, -1, 1, 1, 614 / 1024.0, 819 / 1024.0, -3));
  EXPECT_EQ(update.parts, PrivateSum::on_grid(kAll));
  EXPECT_EQ(PrivateSum::on_grid(kAll)[2].kind, SumKind::kChange);
}

TEST(PrivateSumTest, NeverBeyondTheBound) {
  RandomStream random({3, "updates"});
  const SumParts parts = {{SumKind::kChange, 50}};
  const PrivateSum sum(privacy(0.37, 1), grid(), parts);
  for (int i = 0; i < 200; ++i) {
    ClientUpdate update{parts, {}, 1};
    for (int j = 0; j < 50; ++j) update.values.push_back(random.normal() * std::pow(10, i % 5 - 3));
    sum.clip(&update);
    double square = 0;
    for (const double value : update.values) square += value * value;
    EXPECT_LE(square, 0.37 * 0.37);
    EXPECT_NO_THROW(sum.check(to_grid(grid(), update), "upload"));
  }
}

TEST(PrivateSumTest, AServerRefusesWhatIsBeyond) {
  const PrivateSum sum(privacy(1, 1), grid(), kChanges);
  const ModularVector update = to_grid(grid(), {kChanges, {0.8, 0.8}, 1});
  EXPECT_THAT(error_text([&] { sum.check(update, "upload of client 3"); }),
              HasSubstr("upload of client 3: found an update of norm 1.13"));
}

// The noise of a change has the standard deviation multiplier * sqrt(kinds) * clip, that of votes the same
// times the square root of their number; mean 0.
TEST(PrivateSumTest, NoiseByItsMoments) {
  const SumParts parts = {{SumKind::kVote, 10000}, {SumKind::kChange, 20000}, {SumKind::kPrecise, 5000}};
  const PrivateSum sum(privacy(0.5, 2), grid(), parts);
  const std::vector<int64_t> noise = sum.noise(seeded_random_words({1, "noise"}));
  ASSERT_EQ(noise.size(), 35000u);
  size_t next = 0;
  const double root3 = std::sqrt(3.0);
  for (const auto& [count, sigma] :
       {std::pair{10000, 2 * root3 * 100}, std::pair{20000, 2 * root3 * 0.5 * 1024},
        std::pair{5000, 2 * root3 * 1.5 * 1024}}) {
    double first = 0;
    double second = 0;
    for (int i = 0; i < count; ++i) {
      const double value = static_cast<double>(noise[next++]) / sigma;
      first += value / count;
      second += value * value / count;
    }
    EXPECT_NEAR(first, 0, 4 * std::sqrt(1.0 / count));
    EXPECT_NEAR(second, 1, 4 * std::sqrt(2.0 / count) + 0.002);
  }
}

// The sum of as many clients as must survive has all of the noise, that of all clients of a round more: the
// variances add up. Means stay those of the updates.
TEST(PrivateSumTest, SharesOfNoiseByTheirMoments) {
  constexpr uint32_t kClients = 10;
  constexpr uint32_t kSurvivors = 7;
  constexpr int kCount = 20000;
  DifferentialPrivacy shared = privacy(0.5, 2);
  shared.noise_clients = kSurvivors;
  const SumParts parts = {{SumKind::kChange, kCount}};
  const UpdateGrid room = PrivateSum::with_room(grid(), shared);
  const PrivateSum sum(shared, room, parts);
  const ModularVector update = to_grid(room, {parts, std::vector<double>(kCount, 0.25), 1});
  for (const uint32_t clients : {1u, kSurvivors, kClients}) {
    ModularVector total = ModularVector::zero(room.fields(parts));
    for (uint32_t client = 0; client < clients; ++client) {
      ModularVector noised = update;
      sum.add_noise(seeded_random_words({1, "noise", client}), &noised);
      total.add(noised);
    }
    const UpdateMean mean = sum.mean(total, {}, clients);
    EXPECT_EQ(mean.clients, clients);
    EXPECT_TRUE(mean.is_noised);
    double first = 0;
    double second = 0;
    for (const double value : mean.values) {
      const double noise = (value - 0.25) * clients;  // of the sum
      first += noise / kCount;
      second += noise * noise / kCount;
    }
    const double variance = 1.0 * clients / kSurvivors;  // of the sum, if the multiplier times the clip is 1
    EXPECT_NEAR(first, 0, 4 * std::sqrt(variance / kCount));
    EXPECT_NEAR(second / variance, 1, 4 * std::sqrt(2.0 / kCount) + 0.01);
  }
}

// The least shares that are allowed, of a standard deviation of 4: 64 of them make a discrete Gaussian of 32
// as closely as floating point can tell.
TEST(PrivateSumTest, SharesSumToADiscreteGaussian) {
  constexpr int kReach = 400;
  const auto gaussian = [](double sigma) {
    std::vector<double> density(2 * kReach + 1);
    double all = 0;
    for (int x = -kReach; x <= kReach; ++x)
      all += density[static_cast<size_t>(x + kReach)] = std::exp(-x * x / (2 * sigma * sigma));
    for (double& value : density) value /= all;
    return density;
  };
  std::vector<double> sum = gaussian(ReleaseCost::kMinSigma);
  for (int doubling = 0; doubling < 6; ++doubling) {
    std::vector<double> twice(sum.size());
    for (int x = -kReach; x <= kReach; ++x) {
      for (int y = std::max(-kReach, x - kReach); y <= std::min(kReach, x + kReach); ++y)
        twice[static_cast<size_t>(x + kReach)] +=
            sum[static_cast<size_t>(y + kReach)] * sum[static_cast<size_t>(x - y + kReach)];
    }
    sum = twice;
  }
  const std::vector<double> one = gaussian(8 * ReleaseCost::kMinSigma);
  for (int x = -5 * 32; x <= 5 * 32; ++x) {
    const auto at = static_cast<size_t>(x + kReach);
    EXPECT_NEAR(sum[at] / one[at], 1, 1e-11) << x;
  }
}

// Elements have room for the noise of all clients: sums do not wrap around.
TEST(PrivateSumTest, RoomForSharesOfNoise) {
  DifferentialPrivacy shared = privacy(1, 100);
  shared.noise_clients = 2;
  UpdateGrid small = grid();
  small.range = 1;
  small.max_clients = 3;
  const SumParts parts = {{SumKind::kVote, 1000}, {SumKind::kChange, 1000}};
  const UpdateGrid room = PrivateSum::with_room(small, shared);
  EXPECT_EQ(PrivateSum::with_room(small, privacy(1, 100)).fields(parts), small.fields(parts));
  const PrivateSum sum(shared, room, parts);
  ModularVector total = ModularVector::zero(room.fields(parts));
  std::vector<int64_t> expected(2000);
  for (uint64_t client = 0; client < 3; ++client) {
    ModularVector update = to_grid(room, {parts, std::vector<double>(2000, 1.0), 1});
    sum.add_noise(seeded_random_words({2, "noise", client}), &update);
    total.add(update);
    const std::vector<int64_t> share = sum.noise(seeded_random_words({2, "noise", client}));
    for (size_t i = 0; i < 2000; ++i) expected[i] += share[i] + (i < 1000 ? 1 : 1024);
  }
  for (size_t i = 0; i < 2000; ++i)
    EXPECT_EQ(from_modular(total.values[i], total.fields[i / 1000].bits), expected[i]);
}

TEST(PrivateSumTest, MeanByHand) {
  const PrivateSum sum(privacy(1, 4), grid(), kAll);
  ModularVector total = ModularVector::zero(grid().fields(PrivateSum::on_grid(kAll)));
  for (const double sign : {1.0, -1.0, 1.0}) {
    ClientUpdate update{kAll, {1, 1, -1, sign, 0.5, -0.25 * sign, 2}, 1};
    sum.clip(&update);
    total.add(to_grid(grid(), update));
  }
  // Four clients were expected, three came.
  const UpdateMean mean = sum.mean(total, {0, 2, 0, 0, 512, 0, -1024}, 4);
  EXPECT_THAT(mean.values, ElementsAre(0.75, 1.25, -0.75, 0.25, 0.5, -0.0625, 1.25));
  EXPECT_EQ(mean.clients, 4u);
  EXPECT_TRUE(mean.is_noised);
}

TEST(PrivateSumTest, AVarianceIsNotEmptiedByNoise) {
  UpdateMean mean;
  EXPECT_EQ(mean.variance(-1e-9f, 4), 0);
  mean.is_noised = true;
  EXPECT_EQ(mean.variance(-3, 4), 2);
  EXPECT_EQ(mean.variance(5, 4), 5);
}

TEST(PrivateSumTest, NoiseMustFitTheGrid) {
  EXPECT_THAT(error_text([] { PrivateSum(privacy(0.001, 1), grid(), kChanges); }),
              HasSubstr("found noise of 2 steps of the grid, expected 4 to 67108864: more bits"));
  EXPECT_THAT(error_text([] { PrivateSum(privacy(1e5, 1), grid(), kChanges); }), HasSubstr("fewer bits"));
}

// ---- the recipe ----

DifferentialPrivacy read(const std::string& text, const Sampling& sampling) {
  return read_differential_privacy(Config::parse("[privacy]\n" + text, "recipe.toml"), sampling);
}

TEST(DifferentialPrivacyTest, NoiseOrATarget) {
  const Sampling sampling{100, 10, 100};
  const DifferentialPrivacy given = read("clip = 2\nnoise_multiplier = 1.5", sampling);
  EXPECT_EQ(given.clip, 2);
  EXPECT_EQ(given.statistics_clip, 2);
  EXPECT_EQ(given.delta, 1e-5);
  EXPECT_EQ(given.release.noise_multiplier, 1.5);
  EXPECT_EQ(given.release.sampling, 0.1);
  EXPECT_FALSE(given.max_epsilon);
  const DifferentialPrivacy target = read("clip = 2\nepsilon = 4\ndelta = 1e-6", sampling);
  EXPECT_EQ(target.release.noise_multiplier, noise_for(4, 1e-6, 0.1, 100));
  EXPECT_EQ(target.max_epsilon, 4);
  EXPECT_EQ(read("clip = 2\nepsilon = 4\nmax_epsilon = 2", sampling).max_epsilon, 2);
}

// A device reads the recipe as the server resolved it.
TEST(DifferentialPrivacyTest, TheResolvedRecipeHasTheNoise) {
  const Config recipe = Config::parse("[privacy]\nclip = 1\nepsilon = 4", "recipe.toml");
  EXPECT_TRUE(has_differential_privacy(recipe));
  const DifferentialPrivacy server = read_differential_privacy(recipe, {100, 10, 100});
  const Config resolved = Config::parse(recipe.resolved(), "resolved");
  const DifferentialPrivacy client = read_differential_privacy(resolved, {});
  EXPECT_EQ(client.release.noise_multiplier, server.release.noise_multiplier);
  EXPECT_EQ(read_differential_privacy(resolved, {100, 10, 100}).release.noise_multiplier,
            server.release.noise_multiplier);
}

// The server knows who was drawn, and the sum tells how many: sampling does not count.
TEST(DifferentialPrivacyTest, ClientsAddTheNoise) {
  const Sampling sampling{100, 10, 100};
  const DifferentialPrivacy masked = read("clip = 2\nepsilon = 4\nsecure_aggregation = true", sampling);
  EXPECT_EQ(masked.noise_clients, 6u);  // more than half of 10
  EXPECT_EQ(masked.release.sampling, 1);
  EXPECT_EQ(masked.release.noise_multiplier, noise_for(4, 1e-5, 1, 100));
  EXPECT_EQ(read("clip = 2\nepsilon = 4\nnoise = \"clients\"\nmin_survivors = 5", sampling).noise_clients,
            5u);
  EXPECT_EQ(read("clip = 2\nepsilon = 4", sampling).noise_clients, 0u);
  // A device reads the recipe as the server resolved it.
  const Config recipe =
      Config::parse("[privacy]\nclip = 1\nepsilon = 4\nsecure_aggregation = true", "recipe.toml");
  read_differential_privacy(recipe, sampling);
  const Config resolved = Config::parse(recipe.resolved(), "resolved");
  const DifferentialPrivacy device = read_differential_privacy(resolved, {});
  EXPECT_EQ(device.noise_clients, 6u);
  EXPECT_EQ(device.release.noise_multiplier, noise_for(4, 1e-5, 1, 100));
  EXPECT_THAT(
      error_text(
          [&] { read("clip = 2\nepsilon = 1\nsecure_aggregation = true\nnoise = \"server\"", sampling); }),
      HasSubstr("privacy.noise: found 'server' together with secure_aggregation, expected 'clients'"));
  EXPECT_THAT(
      error_text([&] { has_differential_privacy(Config::parse("[privacy]\nnoise = \"clients\"", "r")); }),
      HasSubstr("privacy.noise: found without privacy.clip"));
}

TEST(DifferentialPrivacyTest, Refused) {
  const Sampling sampling{100, 10, 100};
  EXPECT_THAT(error_text([&] { read("clip = 2", sampling); }),
              HasSubstr("line 2: privacy.clip: found neither noise_multiplier nor epsilon"));
  EXPECT_THAT(error_text([&] { read("clip = 2\nepsilon = 1\nnoise_multiplier = 0.5", sampling); }),
              HasSubstr("privacy.noise_multiplier: found 0.5, expected at least the"));
  EXPECT_THAT(error_text([&] { has_differential_privacy(Config::parse("[privacy]\nepsilon = 1", "r")); }),
              HasSubstr("privacy.epsilon: found without privacy.clip"));
  EXPECT_FALSE(has_differential_privacy(Config::parse("seed = 1", "r")));
}

}  // namespace
}  // namespace bitfed
