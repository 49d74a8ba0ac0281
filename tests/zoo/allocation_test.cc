// A training step allocates nothing.

#include <gtest/gtest.h>

#include "bitfed/zoo/network/network_builder.h"
#include "bitfed/zoo/network/network_recipe.h"
#include "tests/base/counted_allocations.h"

namespace bitfed {
namespace {

// Of what `network` does from its second step on.
void expect_none(const std::string& name, Network network) {
  const std::vector<uint16_t> labels = {0, 1, 2, 0};
  network.set_anchor();
  network.begin_epoch(0.5);
  for (const bool warm : {false, true}) {
    const size_t before = allocations;
    network.differentiate(labels);
    network.descend({.rate = 0.1f, .momentum = 0.9f, .decay = 0.01f});
    if (warm) {
      EXPECT_EQ(allocations - before, 0u) << name;
    }
  }
}

TEST(AllocationTest, ATrainingStepAllocatesNothing) {
  Dataset data;
  data.height = data.width = 16;
  data.channels = 3;
  data.pixel_mean.assign(data.channels, 0.5f);
  data.pixel_std.assign(data.channels, 0.5f);
  data.class_names = {"a", "b", "c"};
  const RandomStream random({1, "network"});
  for (const std::string name : {"cnn4", "resnet10"}) {
    const Config recipe = Config::parse("[model]\nwidth = 16\nname = \"" + name + "\"\n", "recipe.toml");
    expect_none(name, make_network(read_network(recipe, data, false), 4, random));
    NetworkSpec binary = read_network(recipe, data, true);
    expect_none(name + ", rotated", make_rotated_network(binary, {}, 4, random));
    binary.static_signs = true;
    expect_none(name + ", static", make_rotated_network(binary, {}, 4, random));
  }
}

}  // namespace
}  // namespace bitfed
