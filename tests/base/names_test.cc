#include "bitfed/base/names.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace bitfed {
namespace {

const std::vector<std::string> kMethods = {"fedavg", "fedbnn", "fedbat", "fedtmos"};

TEST(NearestName, FindsTheMistypedOne) {
  EXPECT_EQ(nearest_name("fedavg", kMethods), "fedavg");
  EXPECT_EQ(nearest_name("fedagv", kMethods), "fedavg");
  EXPECT_EQ(nearest_name("fedtmo", kMethods), "fedtmos");
  EXPECT_EQ(nearest_name("fdbat", kMethods), "fedbat");
}

TEST(NearestName, SwappedLettersAreOneMistake) {
  const std::vector<std::string> short_names = {"seed", "rate", "name"};
  EXPECT_EQ(nearest_name("sede", short_names), "seed");
  EXPECT_EQ(nearest_name("nmae", short_names), "name");
}

TEST(NearestName, FindsThePart) {
  EXPECT_EQ(nearest_name("tmos", kMethods), "fedtmos");
}

TEST(NearestName, NothingNear) {
  EXPECT_EQ(nearest_name("perceptron", kMethods), "");
  EXPECT_EQ(nearest_name("", kMethods), "");
  EXPECT_EQ(nearest_name("x", kMethods), "");
  EXPECT_EQ(nearest_name("fedavg", {}), "");
}

TEST(Suggestion, NamesTheNearestOrAll) {
  EXPECT_EQ(suggestion("fedagv", kMethods), " (did you mean 'fedavg'?)");
  EXPECT_EQ(suggestion("perceptron", kMethods), " (known: fedavg, fedbnn, fedbat, fedtmos)");
  EXPECT_EQ(suggestion("perceptron", {}), "");
}

}  // namespace
}  // namespace bitfed
