#include "bitfed/data/partition/legacy_random.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace bitfed {
namespace {

// Golden values printed by numpy 2.4.6 (numpy/random/src/legacy/legacy-distributions.c, which numpy keeps
// stable): numpy.random.seed(seed), then the call named in each test.
struct Golden {
  uint32_t seed;
  std::vector<double> values;
};

constexpr double kTolerance = 1e-12;

void expect_near(const std::vector<double>& found, const std::vector<double>& expected, uint32_t seed) {
  ASSERT_GE(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], kTolerance) << "seed " << seed << ", draw " << i;
  }
}

TEST(LegacyRandom, RandomSample) {
  const std::vector<Golden> golden = {
      {0, {0.5488135039273248, 0.7151893663724195, 0.6027633760716439, 0.5448831829968969}},
      {20, {0.5881308010772742, 0.897713727909418, 0.891530729474708, 0.815837477307684}},
      {24, {0.9600173033359185, 0.699512049949576, 0.9998672926238792, 0.22006729978285178}},
  };
  for (const Golden& one : golden) {
    LegacyRandom random(one.seed);
    for (const double value : one.values) EXPECT_EQ(random.uniform(), value) << "seed " << one.seed;
  }
}

TEST(LegacyRandom, Exponential) {
  const std::vector<Golden> golden = {
      {0, {0.79587450816311, 1.2559307629658378, 0.9232231458040688}},
      {20, {0.8870494583824274, 2.279979807692129, 2.2212883670813057}},
      {24, {3.2193085018573533, 1.2023476254766983, 8.927364033236378}},
  };
  for (const Golden& one : golden) {
    LegacyRandom random(one.seed);
    for (const double value : one.values) EXPECT_NEAR(random.exponential(), value, kTolerance);
  }
}

TEST(LegacyRandom, GammaOfOneHalf) {
  const std::vector<Golden> golden = {
      {0, {0.3040018897607044, 0.37827172006781556, 0.1794833890028876}},
      {20, {0.35635066224742784, 1.5978744647464078, 0.0012880623557494427}},
      {24, {3.1084534159534702, 0.13036169073781914, 0.018644422279182893}},
  };
  for (const Golden& one : golden) {
    LegacyRandom random(one.seed);
    for (const double value : one.values) EXPECT_NEAR(random.gamma(0.5), value, kTolerance);
  }
}

// numpy.random.dirichlet([0.1] * 10), and the beginning of the draw after it: how many variates the first
// one used up matters too.
TEST(LegacyRandom, Dirichlet) {
  struct Draws {
    uint32_t seed;
    std::vector<double> first;
    std::vector<double> second;
  };
  const std::vector<Draws> golden = {
      {0,
       {0.002059986509371547, 0.005261202935593007, 0.00015478817978784945, 0.0002139255695365217,
        0.8413307776157907, 0.08041929894426647, 0.0029069699743046054, 2.7189738487124476e-12,
        9.486014421922401e-18, 0.06765305026863032},
       {0.7206126047999535, 0.00018609395420230907, 2.2757152083721028e-10}},
      {20,
       {0.007744859437942973, 0.49617795686566024, 5.545730169702629e-15, 9.484376442851487e-05,
        0.023780056466498646, 3.5076180738227366e-06, 0.13549146411248147, 7.324023090199943e-10,
        9.598796209704646e-07, 0.3367063511228855},
       {0.016270135879170016, 0.3826278020470145, 0.05229781632536437}},
      {24,
       {0.7889294097769675, 3.229282692760523e-05, 1.9324167643450456e-09, 9.815168868212708e-06,
        0.02778483208853645, 0.0016207180237802331, 0.01606196082345801, 0.0018959761948484845,
        0.15505866117764291, 0.008606331986553991},
       {0.48641455333827227, 0.24785378121744328, 0.0030162725772362523}},
  };
  for (const Draws& one : golden) {
    LegacyRandom random(one.seed);
    const std::vector<double> first = random.dirichlet(0.1, 10);
    ASSERT_EQ(first.size(), 10u);
    expect_near(first, one.first, one.seed);
    expect_near(random.dirichlet(0.1, 10), one.second, one.seed);
    EXPECT_NEAR(std::accumulate(first.begin(), first.end(), 0.0), 1, 1e-12);
  }
}

}  // namespace
}  // namespace bitfed
