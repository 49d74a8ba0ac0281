#include "bitfed/data/catalog/synthetic_health.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bitfed/data/catalog/catalog.h"
#include "bitfed/data/partition/partition.h"
#include "tests/data/hand_made.h"

namespace bitfed {
namespace {

using hand_made::input_error_of;
using testing::Each;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;

DataSplit make(uint32_t devices, uint32_t points, double skew, uint64_t seed) {
  return make_synthetic_health({devices, points, skew}, seed);
}

// device -> share of each activity
std::vector<std::vector<double>> shares_of(const Dataset& table) {
  const auto counts = class_counts(table, make_partition(table, {.kind = "column"}, 0));
  std::vector<std::vector<double>> shares;
  for (const auto& own : counts) {
    const double sum = std::accumulate(own.begin(), own.end(), 0.0);
    shares.emplace_back();
    for (const uint32_t count : own) shares.back().push_back(count / sum);
  }
  return shares;
}

// Half the sum of the differences between a device's shares and those of all, meaned over devices.
double heterogeneity(const Dataset& table) {
  const auto shares = shares_of(table);
  double sum = 0;
  for (size_t label = 0; label < table.class_count(); ++label) {
    double mean = 0;
    for (const auto& own : shares) mean += own[label] / static_cast<double>(shares.size());
    for (const auto& own : shares) sum += std::fabs(own[label] - mean) / 2;
  }
  return sum / static_cast<double>(shares.size());
}

TEST(SyntheticHealth, Shapes) {
  const DataSplit split = make(4, 1000, 0.5, 1);
  for (const auto& [part, points] : {std::pair(&split.train, 1000u), std::pair(&split.test, 300u)}) {
    EXPECT_EQ(part->name, "synthetic-health");
    EXPECT_EQ(part->columns.size(), 14u);
    EXPECT_EQ(part->class_count(), 6u);
    EXPECT_EQ(part->size(), 4 * points);
    EXPECT_EQ(part->values.size(), 4 * points * 14);
    ASSERT_EQ(part->groups.size(), 4 * points);
    EXPECT_TRUE(std::is_sorted(part->groups.begin(), part->groups.end()));
    for (const uint32_t device : {0u, 3u})
      EXPECT_EQ(std::count(part->groups.begin(), part->groups.end(), device), points);
    EXPECT_THAT(part->group_names, ElementsAre("device 1", "device 2", "device 3", "device 4"));
    EXPECT_TRUE(
        std::all_of(part->values.begin(), part->values.end(), [](float v) { return std::isfinite(v); }));
  }
}

TEST(SyntheticHealth, SameSeedSameBytes) {
  const DataSplit one = make(3, 500, 0.5, 7);
  const DataSplit same = make(3, 500, 0.5, 7);
  const DataSplit other = make(3, 500, 0.5, 8);
  EXPECT_EQ(one.train.values, same.train.values);
  EXPECT_EQ(one.train.labels, same.train.labels);
  EXPECT_EQ(one.test.values, same.test.values);
  EXPECT_NE(one.train.values, other.train.values);
  EXPECT_NE(one.train.labels, other.train.labels);
}

// More devices, or more points of each, leave the first ones as they are.
TEST(SyntheticHealth, APersonDoesNotDependOnTheOthers) {
  const DataSplit small = make(2, 100, 0.5, 7);
  const DataSplit large = make(3, 200, 0.5, 7);
  for (size_t device = 0; device < 2; ++device) {
    const auto first = [&](const Dataset& table, size_t points) {
      const auto begin = table.values.begin() + static_cast<std::ptrdiff_t>(device * points * 14);
      return std::vector<float>(begin, begin + 100 * 14);
    };
    EXPECT_EQ(first(small.train, 100), first(large.train, 200)) << device;
  }
  // The test points follow the training points.
  EXPECT_EQ(std::vector<float>(small.test.values.begin(), small.test.values.begin() + 30 * 14),
            std::vector<float>(large.train.values.begin() + 100 * 14, large.train.values.begin() + 130 * 14));
}

TEST(SyntheticHealth, EveryClassHasSamples) {
  const DataSplit split = make(20, 5000, 0.5, 0);
  for (const Dataset* part : {&split.train, &split.test}) {
    std::vector<size_t> sizes(6);
    for (const uint16_t label : part->labels) ++sizes[label];
    EXPECT_THAT(sizes, Each(Gt(part->size() / 50)));
  }
}

// A share of a Dirichlet(0.5) draw over six classes is Beta(0.5, 2.5), whose mean absolute deviation is
// 2 a^a b^b / (B(a, b) (a + b)^(a + b + 1)) = 0.146: three times that for six classes halved. With a large
// concentration the bouts' own chance remains.
TEST(SyntheticHealth, SkewMakesDevicesDiffer) {
  const double skewed = heterogeneity(make(20, 20000, 0.1, 3).train);
  const double usual = heterogeneity(make(20, 20000, 0.5, 3).train);
  const double even = heterogeneity(make(20, 20000, 1000, 3).train);
  EXPECT_GT(skewed, usual + 0.1);
  EXPECT_NEAR(usual, 0.44, 0.08);
  EXPECT_LT(even, 0.1);
}

// Bouts have 30 to 150 points; two of the same activity may follow each other.
TEST(SyntheticHealth, ActivitiesLastForMinutes) {
  const Dataset table = make(5, 20000, 1000, 2).train;
  size_t begin = 0;
  size_t bouts = 0;
  size_t longest = 0;
  for (size_t i = 1; i <= table.size(); ++i) {
    if (i < table.size() && table.labels[i] == table.labels[i - 1] && table.groups[i] == table.groups[i - 1])
      continue;
    const bool whole = i < table.size() && table.groups[i] == table.groups[begin];
    if (whole) {
      EXPECT_GE(i - begin, 30u) << begin;
    }
    longest = std::max(longest, i - begin);
    ++bouts;
    begin = i;
  }
  EXPECT_GT(longest, 150u);
  // 90 points a bout, a sixth of the bouts continue the one before: 108 points on average.
  EXPECT_NEAR(static_cast<double>(table.size()) / static_cast<double>(bouts), 108, 8);
}

struct Moments {
  double mean = 0;
  double deviation = 0;
};

Moments moments_of(const Dataset& table, size_t column, uint16_t label, uint32_t device) {
  double sum = 0;
  double squares = 0;
  double count = 0;
  for (size_t i = 0; i < table.size(); ++i) {
    if (table.labels[i] != label || table.groups[i] != device) continue;
    const double value = table.row(i)[column];
    sum += value;
    squares += value * value;
    ++count;
  }
  return {sum / count, std::sqrt(squares / count - sum / count * (sum / count))};
}

// The formula of the header for heart_rate, of scale 18: over people, the mean level of running is 1.4 above
// the centre of 95 and that of lying 1.1 below; offsets (0.6) and gains (0.2) are each person's own.
TEST(SyntheticHealth, ReadingsFollowTheFormula) {
  constexpr uint32_t kPeople = 60;
  const Dataset table = make(kPeople, 4000, 1000, 4).train;
  const size_t heart = 10;
  ASSERT_EQ(table.columns[heart], "heart_rate");
  ASSERT_EQ(table.class_names[0], "lying");
  ASSERT_EQ(table.class_names[5], "running");
  double lying = 0;
  double running = 0;
  double spread = 0;
  for (uint32_t person = 0; person < kPeople; ++person) {
    const Moments rest = moments_of(table, heart, 0, person);
    const Moments run = moments_of(table, heart, 5, person);
    EXPECT_GT(rest.deviation, 18 * 0.7 * 0.9) << "at least the sensor's noise";
    EXPECT_LT(rest.deviation, 18 * 2.0);
    lying += rest.mean / kPeople;
    running += run.mean / kPeople;
    spread += (rest.mean - (95 - 18 * 1.1)) * (rest.mean - (95 - 18 * 1.1)) / kPeople;
  }
  EXPECT_NEAR(lying, 95 - 18 * 1.1, 18 * 0.3);
  EXPECT_NEAR(running, 95 + 18 * 1.4, 18 * 0.3);
  EXPECT_NEAR(std::sqrt(spread), 18 * std::hypot(0.6, 0.2 * 1.1), 18 * 0.25);
}

// Neighbours share the slow factors, points an hour apart do not.
TEST(SyntheticHealth, NeighboursAreAlike) {
  const Dataset table = make(2, 50000, 1000, 5).train;
  const auto distance = [&](size_t lag) {
    double sum = 0;
    double count = 0;
    for (size_t i = 0; i + lag < table.size(); ++i) {
      if (table.groups[i] != table.groups[i + lag] || table.labels[i] != table.labels[i + lag]) continue;
      for (size_t j = 0; j < 3; ++j) sum += std::pow(table.row(i)[j] - table.row(i + lag)[j], 2);
      ++count;
    }
    return sum / count;
  };
  EXPECT_LT(distance(1), 0.9 * distance(1800));
}

SyntheticHealthOptions read(const std::string& keys) {
  const Config config = Config::parse("[data]\n" + keys, "r.toml");
  const SyntheticHealthOptions options = read_synthetic_health(config.section("data"));
  config.reject_unknown_keys();
  return options;
}

TEST(SyntheticHealth, Options) {
  EXPECT_EQ(read("").devices, 20u);
  EXPECT_EQ(read("").points, 100000u);
  EXPECT_EQ(read("").skew, 0.5);
  EXPECT_EQ(read("devices = 3\npoints = 20\nskew = 2").points, 20u);
  for (const std::string keys : {"devices = 1", "points = 9", "skew = 0", "skew = 1001"}) {
    EXPECT_THAT(input_error_of([&] { read(keys); }), HasSubstr("r.toml: line 2: data."));
  }
  EXPECT_EQ(
      input_error_of([] { read("devices = 6\npoints = 10000000"); }),
      "r.toml: line 3: data.points: found 10000000 points of 6 devices, 60000000 in total, expected at most "
      "50000000");
}

TEST(SyntheticHealth, IsInTheCatalog) {
  const Config recipe =
      Config::parse("[data]\nname = 'synthetic-health'\ndevices = 3\npoints = 100\n", "r.toml");
  const DataSplit split = load_data(recipe.section("data"), "/nowhere", 9);
  recipe.reject_unknown_keys();
  EXPECT_EQ(split.train.values, make(3, 100, 0.5, 9).train.values);
  EXPECT_EQ(make_partition(split.train, {.kind = "column"}, 0).size(), 3u);
}

}  // namespace
}  // namespace bitfed
