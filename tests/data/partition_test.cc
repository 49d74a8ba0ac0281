#include "bitfed/data/partition/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

// `per_class` samples of each class; the label of sample i is i % classes.
Dataset balanced(size_t classes, size_t per_class) {
  Dataset data;
  data.name = "balanced";
  for (size_t c = 0; c < classes; ++c) data.class_names.push_back(std::to_string(c));
  for (size_t i = 0; i < classes * per_class; ++i) data.labels.push_back(static_cast<uint16_t>(i % classes));
  return data;
}

PartitionSpec spec_of(const std::string& kind, uint32_t clients) {
  PartitionSpec spec;
  spec.kind = kind;
  spec.clients = clients;
  return spec;
}

std::vector<size_t> sizes(const Partition& partition) {
  std::vector<size_t> result;
  for (const auto& own : partition) result.push_back(own.size());
  return result;
}

size_t total(const Partition& partition) {
  size_t sum = 0;
  for (const auto& own : partition) sum += own.size();
  return sum;
}

// What every partition promises: ascending indices of existing samples, none twice, no client without any.
void expect_sound(const Partition& partition, const Dataset& data) {
  std::set<uint32_t> seen;
  for (const auto& own : partition) {
    EXPECT_FALSE(own.empty());
    EXPECT_TRUE(std::is_sorted(own.begin(), own.end()));
    for (const uint32_t sample : own) {
      EXPECT_LT(sample, data.size());
      EXPECT_TRUE(seen.insert(sample).second) << "sample " << sample << " twice";
    }
  }
}

std::vector<uint32_t> labels_of(const std::vector<uint32_t>& counts) {
  std::vector<uint32_t> labels;
  for (uint32_t label = 0; label < counts.size(); ++label) {
    if (counts[label] > 0) labels.push_back(label);
  }
  return labels;
}

std::string error_of(const Dataset& data, const PartitionSpec& spec) {
  try {
    make_partition(data, spec, 1);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kInput);
    const std::string text = error.what();
    EXPECT_EQ(text.find('\n'), std::string::npos);
    return text;
  }
  return "no error";
}

class EveryKind : public testing::TestWithParam<std::string> {
 protected:
  static Dataset data() {
    Dataset data = balanced(10, 60);
    data.group_names = {"ann", "bob", "eve", "dan", "kim", "joe", "may"};
    for (size_t i = 0; i < data.size(); ++i) data.groups.push_back(static_cast<uint32_t>(i / 10 % 7));
    return data;
  }
  static PartitionSpec spec() {
    PartitionSpec spec = spec_of(GetParam(), 7);
    spec.alpha = 0.5;
    spec.labels = 3;
    return spec;
  }
};

TEST_P(EveryKind, DealsEachSampleAtMostOnceForManySeeds) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Partition partition = make_partition(data(), spec(), seed);
    EXPECT_EQ(partition.size(), 7u);
    EXPECT_EQ(total(partition), 600u) << "with 21 places for 10 labels every sample finds a client";
    expect_sound(partition, data());
  }
}

TEST_P(EveryKind, IsAFunctionOfTheSeed) {
  EXPECT_EQ(make_partition(data(), spec(), 5), make_partition(data(), spec(), 5));
  if (GetParam() == "column") {
    EXPECT_EQ(make_partition(data(), spec(), 5), make_partition(data(), spec(), 6));
  } else {
    EXPECT_NE(make_partition(data(), spec(), 5), make_partition(data(), spec(), 6));
  }
}

TEST_P(EveryKind, DoesNotLookAtThePixels) {
  Dataset images = data();
  images.height = images.width = images.channels = 1;
  images.pixels.assign(images.size(), 7);
  EXPECT_EQ(make_partition(images, spec(), 5), make_partition(data(), spec(), 5));
}

// But for people: one person is no federation.
TEST_P(EveryKind, GivesOneClientWhatThereIs) {
  PartitionSpec one = spec();
  one.clients = 1;
  one.labels = 10;
  Dataset all = data();
  all.group_names = {"ann"};
  all.groups.assign(all.size(), 0);
  std::vector<uint32_t> everything(all.size());
  std::iota(everything.begin(), everything.end(), 0);
  if (one.kind == "column") {
    EXPECT_THAT(error_of(all, one), HasSubstr("found one person, 'ann'"));
  } else {
    EXPECT_THAT(make_partition(all, one, 3), ElementsAre(everything));
  }
}

TEST_P(EveryKind, RefusesLabelsBeyondTheClasses) {
  Dataset broken = data();
  broken.labels[4] = 10;
  EXPECT_THAT(error_of(broken, spec()), HasSubstr("label of sample 4 is 10, expected one below 10"));
}

TEST_P(EveryKind, RefusesAnEmptySet) {
  Dataset empty;
  empty.name = "nothing";
  EXPECT_THAT(error_of(empty, spec()), HasSubstr("nothing: no training samples"));
}

INSTANTIATE_TEST_SUITE_P(Partition, EveryKind,
                         testing::Values("iid", "dirichlet", "dirichlet-balanced", "label-subset", "classes",
                                         "column"),
                         [](const auto& kind) {
                           std::string name = kind.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Partition, IidPartsDifferByOneAtMost) {
  EXPECT_THAT(sizes(make_partition(balanced(2, 5), spec_of("iid", 4), 0)), ElementsAre(3, 3, 2, 2));
  EXPECT_THAT(sizes(make_partition(balanced(2, 5), spec_of("iid", 10), 0)), Each(1u));
}

TEST(Partition, IidMixesTheClasses) {
  const Dataset data = balanced(10, 1000);
  const Partition partition = make_partition(data, spec_of("iid", 10), 3);
  for (const auto& counts : class_counts(data, partition)) {
    EXPECT_THAT(counts, Each(AllOf(Ge(55u), Le(150u))));  // hypergeometric, mean 100, deviation 9
  }
}

// A client stops receiving at N / clients; the class that takes it there may take it further.
TEST(Partition, DirichletHonoursTheMinimum) {
  const Dataset data = balanced(10, 600);
  PartitionSpec spec = spec_of("dirichlet", 10);
  spec.minimum = 200;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Partition partition = make_partition(data, spec, seed);
    EXPECT_THAT(sizes(partition), Each(AllOf(Ge(200u), Le(1199u))));
    EXPECT_EQ(total(partition), data.size());
  }
}

// Var(share) = (1/J)(1 - 1/J) / (J alpha + 1): a small alpha concentrates, a large one spreads.
TEST(Partition, DirichletFollowsAlpha) {
  const Dataset data = balanced(10, 600);
  for (const std::string kind : {"dirichlet", "dirichlet-balanced"}) {
    PartitionSpec spec = spec_of(kind, 10);
    spec.alpha = 1e5;
    for (const auto& counts : class_counts(data, make_partition(data, spec, 1))) {
      EXPECT_THAT(counts, Each(AllOf(Ge(57u), Le(63u)))) << kind;
    }
    spec.alpha = 0.05;
    spec.minimum = 1;
    size_t shares_of_half = 0;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      for (const auto& counts : class_counts(data, make_partition(data, spec, seed))) {
        for (const uint32_t count : counts) shares_of_half += count >= 300;
      }
    }
    EXPECT_GT(shares_of_half, 100u) << kind << ": of 200 classes most go mainly to one client";
  }
}

size_t median(std::vector<size_t> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// The paper's setting: 60,000 samples of 10 classes, 10 clients. A direct numpy transcription of the
// division by sums gives 4,918 to 7,054 samples a client at alpha .05 for the paper's seeds 0, 20 and 24,
// and over 100 seeds these medians of the smallest and largest client: 5,022 and 7,012 at alpha .05, 5,528
// and 6,422 at .1, 5,962 and 6,026 at .3.
TEST(Partition, BalancedDirichletMakesClientsOfNearlyEqualSize) {
  const Dataset data = balanced(10, 6000);
  const struct {
    double alpha;
    double least;
    double most;
  } cases[] = {{0.05, 5022, 7012}, {0.1, 5528, 6422}, {0.3, 5962, 6026}};
  for (const auto& expected : cases) {
    PartitionSpec spec = spec_of("dirichlet-balanced", 10);
    spec.alpha = expected.alpha;
    std::vector<size_t> least;
    std::vector<size_t> most;
    for (uint64_t seed = 0; seed < 101; ++seed) {
      const auto found = sizes(make_partition(data, spec, seed));
      EXPECT_EQ(std::accumulate(found.begin(), found.end(), size_t{0}), data.size());
      least.push_back(*std::min_element(found.begin(), found.end()));
      most.push_back(*std::max_element(found.begin(), found.end()));
    }
    EXPECT_NEAR(static_cast<double>(median(least)), expected.least, 200) << "alpha " << expected.alpha;
    EXPECT_NEAR(static_cast<double>(median(most)), expected.most, 200) << "alpha " << expected.alpha;
  }
}

TEST(Partition, BalancedDirichletDealsBlocksOfEachClass) {
  const Dataset data = balanced(3, 100);
  const Partition partition = make_partition(data, spec_of("dirichlet-balanced", 4), 2);
  for (uint32_t label = 0; label < 3; ++label) {
    uint32_t next = label;  // samples of a class are `label`, `label` + 3, …
    for (const auto& own : partition) {
      for (const uint32_t sample : own) {
        if (data.labels[sample] != label) continue;
        EXPECT_EQ(sample, next);
        next += 3;
      }
    }
  }
}

// With an odd number of divisions the paper's code deals more of a class than there is.
TEST(Partition, BalancedDirichletHoldsForAnyNumberOfClients) {
  const Dataset data = balanced(10, 100);
  for (const uint32_t clients : {1, 2, 3, 5, 7, 9, 11, 15, 33}) {
    PartitionSpec spec = spec_of("dirichlet-balanced", clients);
    spec.alpha = 0.3;
    const Partition partition = make_partition(data, spec, 4);
    EXPECT_EQ(partition.size(), clients);
    EXPECT_EQ(total(partition), data.size());
    expect_sound(partition, data);
  }
}

// Every gamma variate underflows for most draws: each class falls to one client.
TEST(Partition, DirichletSurvivesTheLeastAlpha) {
  const Dataset data = balanced(10, 50);
  for (const std::string kind : {"dirichlet", "dirichlet-balanced"}) {
    PartitionSpec spec = spec_of(kind, 3);
    spec.alpha = 1e-3;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const Partition partition = make_partition(data, spec, seed);
      EXPECT_EQ(total(partition), data.size());
      expect_sound(partition, data);
    }
  }
}

TEST(Partition, DirichletSaysWhenItCannotBeMet) {
  PartitionSpec spec = spec_of("dirichlet", 10);
  spec.minimum = 11;
  EXPECT_THAT(error_of(balanced(10, 10), spec),
              HasSubstr("partition.minimum = 11: 10 clients need 110 samples, balanced has 100"));
  spec.alpha = 1e-3;
  spec.minimum = 10;
  EXPECT_THAT(error_of(balanced(2, 50), spec), HasSubstr("partition.alpha = 0.001: in 1000 draws"));
  spec = spec_of("dirichlet-balanced", 30);
  spec.alpha = 1e-3;  // of 30 variates about half are zero in double precision
  EXPECT_THAT(error_of(balanced(1, 60), spec), HasSubstr("expected 1; take a larger alpha or fewer clients"));
  for (const double alpha : {0.0, -1.0, std::nan(""), 1e7}) {
    spec.alpha = alpha;
    EXPECT_THAT(error_of(balanced(2, 50), spec), HasSubstr("partition.alpha = "));
  }
}

TEST(Partition, LabelSubsetGivesEachClientItsLabels) {
  const Dataset data = balanced(10, 97);
  PartitionSpec spec = spec_of("label-subset", 20);
  for (const uint32_t labels : {1u, 2u, 3u, 10u}) {
    spec.labels = labels;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const Partition partition = make_partition(data, spec, seed);
      const auto counts = class_counts(data, partition);
      EXPECT_EQ(total(partition), data.size());
      for (const auto& own : counts) EXPECT_EQ(labels_of(own).size(), labels);
      for (size_t label = 0; label < 10; ++label) {
        std::set<uint32_t> parts;
        for (const auto& own : counts) {
          if (own[label] > 0) parts.insert(own[label]);
        }
        EXPECT_LE(*parts.rbegin() - *parts.begin(), 1u) << "holders of a label have even parts";
      }
    }
  }
}

TEST(Partition, LabelsThatNobodyHoldsAreNotDealt) {
  const Dataset data = balanced(10, 20);
  for (const std::string kind : {"label-subset", "classes"}) {
    PartitionSpec spec = spec_of(kind, 3);
    spec.labels = 2;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const Partition partition = make_partition(data, spec, seed);
      EXPECT_EQ(total(partition), 120u) << "six places, so six different labels";
      for (const auto& own : class_counts(data, partition)) EXPECT_EQ(labels_of(own).size(), 2u);
    }
  }
}

TEST(Partition, ClassesGivesClientItsOwnClass) {
  const Dataset data = balanced(10, 60);
  PartitionSpec spec = spec_of("classes", 25);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (spec.labels = 1; spec.labels <= 4; ++spec.labels) {
      const auto counts = class_counts(data, make_partition(data, spec, seed));
      for (size_t client = 0; client < counts.size(); ++client) {
        EXPECT_GT(counts[client][client % 10], 0u);
        EXPECT_EQ(labels_of(counts[client]).size(), spec.labels);
      }
    }
  }
}

// S(1) leaves nothing to draw: each class whole.
TEST(Partition, ClassesOfOneLabel) {
  PartitionSpec spec = spec_of("classes", 3);
  spec.labels = 1;
  EXPECT_THAT(make_partition(balanced(3, 2), spec, 9),
              ElementsAre(ElementsAre(0, 3), ElementsAre(1, 4), ElementsAre(2, 5)));
}

TEST(Partition, ClassesAsInThePaper) {
  const Dataset data = balanced(10, 6);
  PartitionSpec spec = spec_of("classes", 10);
  spec.allotment = "paper";
  const auto two = class_counts(data, make_partition(data, spec, 0));
  EXPECT_THAT(labels_of(two[0]), ElementsAre(0, 3));
  EXPECT_THAT(labels_of(two[9]), ElementsAre(1, 9));
  EXPECT_EQ(two[0][0], 6u) << "nobody else holds label 0";
  EXPECT_EQ(two[0][3], 2u) << "clients 0, 3 and 8 hold label 3";
  spec.labels = 3;
  const auto three = class_counts(data, make_partition(data, spec, 1));
  EXPECT_THAT(labels_of(three[6]), ElementsAre(6, 7, 9));
  spec.labels = 4;
  const auto four = class_counts(data, make_partition(data, spec, 1));
  EXPECT_THAT(labels_of(four[1]), ElementsAre(1, 2, 7, 8));
  EXPECT_THAT(labels_of(four[9]), ElementsAre(0, 3, 8, 9));
}

// numpy.random.seed(seed), a draw of numpy.random.dirichlet for each of ten classes, ten times
// d = d / d.sum(1) / d.sum(0) with both sums taken before, floor(d * 6000): what numpy 2.4.6 gives. Flooring
// each part loses up to a sample a class; here every sample is dealt.
TEST(Partition, BalancedDirichletAsInThePaper) {
  struct Split {
    double alpha;
    uint64_t seed;
    std::vector<size_t> sizes;
  };
  const std::vector<Split> splits = {
      {0.05, 0, {6554, 4918, 6006, 6108, 6104, 6298, 5733, 5680, 6120, 6452}},
      {0.05, 20, {6359, 6224, 6115, 6014, 5751, 5776, 6393, 6191, 5543, 5605}},
      {0.05, 24, {5515, 5972, 7054, 6082, 5478, 6137, 6569, 5618, 5564, 5982}},
      {0.1, 0, {5788, 5681, 6016, 6148, 6107, 6065, 6018, 6208, 5887, 6048}},
      {0.1, 20, {5998, 6002, 5975, 6111, 5973, 5990, 6015, 6002, 5939, 5958}},
      {0.1, 24, {6092, 5989, 5974, 5780, 6070, 6211, 5927, 6274, 6048, 5595}},
      {0.3, 0, {5999, 6008, 6032, 5972, 6015, 5995, 5983, 5971, 5976, 6003}},
      {0.3, 20, {5999, 6002, 5986, 6001, 5998, 6003, 5994, 5977, 6003, 5987}},
      {0.3, 24, {5994, 6001, 5998, 6000, 5993, 5999, 5996, 5999, 5994, 5975}},
  };
  const Dataset data = balanced(10, 6000);
  PartitionSpec spec = spec_of("dirichlet-balanced", 10);
  spec.allotment = "paper";
  for (const Split& split : splits) {
    spec.alpha = split.alpha;
    const Partition partition = make_partition(data, spec, split.seed);
    expect_sound(partition, data);
    EXPECT_EQ(total(partition), 60000u);
    for (size_t client = 0; client < 10; ++client) {
      EXPECT_THAT(partition[client].size(), AllOf(Ge(split.sizes[client]), Le(split.sizes[client] + 10)))
          << "alpha " << split.alpha << ", seed " << split.seed << ", client " << client;
    }
  }
  // Class by class for alpha .1, seed 20.
  const std::vector<std::vector<uint32_t>> expected = {
      {350, 1886, 0, 0, 228, 0, 368, 0, 0, 3165},    {864, 1709, 402, 10, 1231, 0, 1240, 1, 0, 538},
      {1, 0, 0, 1921, 1401, 945, 783, 882, 34, 30},  {2850, 612, 0, 23, 192, 2265, 0, 54, 0, 0},
      {0, 0, 932, 0, 199, 0, 293, 2665, 1435, 473},  {1, 0, 0, 0, 192, 171, 3281, 2351, 0, 0},
      {1232, 634, 0, 41, 174, 952, 0, 0, 2077, 886}, {0, 11, 25, 1, 2355, 405, 0, 11, 2327, 861},
      {700, 1038, 0, 4115, 1, 102, 0, 35, 0, 5},     {0, 112, 4616, 0, 0, 1150, 50, 3, 66, 0},
  };
  spec.alpha = 0.1;
  const auto counts = class_counts(data, make_partition(data, spec, 20));
  for (size_t label = 0; label < 10; ++label) {
    for (size_t client = 0; client < 10; ++client) {
      EXPECT_THAT(counts[client][label], AllOf(Ge(expected[label][client]), Le(expected[label][client] + 1)))
          << "class " << label << ", client " << client;
    }
  }
}

TEST(Partition, BalancedDirichletOfThePaperNeedsItsGenerator) {
  PartitionSpec spec = spec_of("dirichlet-balanced", 10);
  spec.allotment = "paper";
  spec.alpha = 1;
  EXPECT_THAT(error_of(balanced(10, 60), spec), HasSubstr("alpha below 1"));
  spec.alpha = 0.5;
  EXPECT_THROW(make_partition(balanced(10, 60), spec, uint64_t{1} << 32), Error);
}

TEST(Partition, TheAllotmentOfThePaperIsForItsSetting) {
  PartitionSpec spec = spec_of("classes", 10);
  spec.allotment = "paper";
  spec.labels = 5;
  EXPECT_THAT(error_of(balanced(10, 6), spec),
              HasSubstr("found 5 labels, 10 clients and 10 classes, expected 2, 3 or 4 labels"));
  spec.labels = 2;
  EXPECT_THAT(error_of(balanced(9, 6), spec), HasSubstr("9 classes"));
  spec.clients = 11;
  EXPECT_THAT(error_of(balanced(10, 6), spec), HasSubstr("11 clients"));
  spec.allotment = "mine";
  EXPECT_THAT(error_of(balanced(10, 6), spec), HasSubstr("partition.allotment = \"mine\""));
}

TEST(Partition, ColumnFollowsTheGroups) {
  Dataset data = balanced(2, 3);
  data.group_names = {"ann", "test only", "eve"};
  data.groups = {2, 0, 0, 2, 2, 0};
  EXPECT_THAT(make_partition(data, spec_of("column", 10), 1),
              ElementsAre(ElementsAre(1, 2, 5), ElementsAre(0, 3, 4)));
  data.groups = {2, 2, 2, 2, 2, 2};
  EXPECT_EQ(
      error_of(data, spec_of("column", 10)),
      "partition.kind = \"column\": found one person, 'eve', in the training rows of balanced, expected at "
      "least two");
  data.groups[3] = 3;
  EXPECT_THAT(error_of(data, spec_of("column", 10)),
              HasSubstr("group of sample 3 is 3, expected one below 3"));
  data.groups.clear();
  EXPECT_THAT(error_of(data, spec_of("column", 10)),
              HasSubstr("balanced has no column of people or devices"));
}

TEST(Partition, RefusesWhatCannotBeMet) {
  const Dataset data = balanced(3, 2);
  EXPECT_THAT(error_of(data, spec_of("iid", 0)), HasSubstr("partition.clients = 0: expected 1 to 6"));
  EXPECT_THAT(error_of(data, spec_of("iid", 7)), HasSubstr("partition.clients = 7: expected 1 to 6"));
  EXPECT_THAT(error_of(data, spec_of("idd", 2)), HasSubstr("partition.kind = \"idd\" is unknown"));
  for (const std::string kind : {"label-subset", "classes"}) {
    PartitionSpec spec = spec_of(kind, 2);
    spec.labels = 4;
    EXPECT_THAT(error_of(data, spec), HasSubstr("partition.labels = 4: expected 1 to 3"));
    spec.labels = 0;
    EXPECT_THAT(error_of(data, spec), HasSubstr("partition.labels = 0"));
  }
}

TEST(Partition, RefusesAClientWithoutSamples) {
  Dataset data = balanced(2, 3);
  data.labels = {0, 0, 0, 0, 0, 1};  // one sample of class 1 and two clients that hold nothing else
  PartitionSpec spec = spec_of("classes", 4);
  spec.labels = 1;
  EXPECT_THAT(error_of(data, spec), HasSubstr("client 3 is left without samples"));
}

TEST(ClassCounts, CountsByClient) {
  const Dataset data = balanced(3, 2);  // labels 0 1 2 0 1 2
  EXPECT_THAT(class_counts(data, {{0, 3, 4}, {5}}), ElementsAre(ElementsAre(2, 1, 0), ElementsAre(0, 0, 1)));
}

PartitionSpec read(const std::string& table) {
  const Config config = Config::parse("partition = " + table, "recipe.toml");
  const PartitionSpec spec = read_partition(config.section("partition"));
  config.reject_unknown_keys();
  return spec;
}

std::string read_error(const std::string& table) {
  try {
    read(table);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ReadPartition, ReadsTheKeysOfItsKind) {
  EXPECT_EQ(describe(read("{}")), "IID, 10 clients");
  EXPECT_EQ(describe(read("{kind = 'iid', clients = 1}")), "IID, 1 client");
  EXPECT_EQ(describe(read("{kind = 'dirichlet-balanced', alpha = 0.05}")), "Dir(0.05), 10 clients");
  EXPECT_EQ(describe(read("{kind = 'dirichlet', clients = 100, alpha = 1}")), "plain Dir(1), 100 clients");
  EXPECT_EQ(read("{kind = 'dirichlet', minimum = 3}").minimum, 3u);
  EXPECT_EQ(describe(read("{kind = 'label-subset', labels = 3}")), "3 labels each, 10 clients");
  EXPECT_EQ(describe(read("{kind = 'label-subset', labels = 1}")), "1 label each, 10 clients");
  EXPECT_EQ(describe(read("{kind = 'classes', labels = 2}")), "S(2), 10 clients");
  EXPECT_EQ(read("{kind = 'classes', allotment = 'paper'}").allotment, "paper");
  EXPECT_EQ(describe(read("{kind = 'column'}")), "by column");
  EXPECT_EQ(describe(spec_of("column", 30)), "by column, 30 clients");
}

TEST(ReadPartition, RefusesOtherKeysAndValuesOutOfRange) {
  EXPECT_THAT(read_error("{kind = 'iid', alpha = 0.1}"), HasSubstr("alpha"));
  EXPECT_THAT(read_error("{kind = 'dirichlet-balanced', minimum = 10}"), HasSubstr("minimum"));
  EXPECT_THAT(read_error("{kind = 'label-subset', allotment = 'paper'}"), HasSubstr("allotment"));
  EXPECT_THAT(read_error("{kind = 'column', clients = 10}"), HasSubstr("clients"));
  EXPECT_THAT(read_error("{clients = 0}"), HasSubstr("partition.clients"));
  EXPECT_THAT(read_error("{kind = 'dirichlet', alpha = 0}"), HasSubstr("partition.alpha"));
  EXPECT_THAT(read_error("{kind = 'classes', labels = 0}"), HasSubstr("partition.labels"));
  EXPECT_THAT(read_error("{kind = 'classes', allotment = 'ours'}"), HasSubstr("random, paper"));
  EXPECT_THAT(read_error("{kind = 'dirichlett'}"), HasSubstr("dirichlet-balanced"));
}

}  // namespace
}  // namespace bitfed
