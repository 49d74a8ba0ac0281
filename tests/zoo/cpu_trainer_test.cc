#include <gtest/gtest.h>

#include <limits>

#include "bitfed/zoo/network/network_builder.h"
#include "bitfed/zoo/network/network_recipe.h"
#include "bitfed/zoo/network/trainer.h"

namespace bitfed {
namespace {

std::unique_ptr<Trainer> some_trainer(size_t clients) {
  Dataset data;
  data.height = data.width = 16;
  data.channels = 1;
  data.pixel_mean = {0.5f};
  data.pixel_std = {0.5f};
  data.class_names = {"a", "b"};
  const Config recipe = Config::parse("[model]\nwidth = 16\nname = \"cnn4\"\n", "recipe.toml");
  const NetworkSpec spec = read_network(recipe, data, true);
  auto trainer = make_cpu_trainer({spec, RotatedOptions()}, clients, 4);
  Network network = make_rotated_network(spec, {}, 1, RandomStream({1, "network"}));
  const std::vector<uint8_t> pixels(256, 77);
  trainer->set_parameters(parameters_of(network));
  for (size_t client = 0; client < clients; ++client) {
    trainer->load(client, 0, pixels);
    trainer->begin_round(client, RandomStream({2, "round"}));
  }
  return trainer;
}

// One client's loss is not finite: it alone has diverged, also after later steps, and until its next round.
TEST(CpuTrainer, SaysWhoDiverged) {
  const auto trainer = some_trainer(2);
  const std::vector<uint16_t> labels = {1};
  const std::vector<std::span<const uint16_t>> both = {labels, labels};
  trainer->differentiate(both);
  EXPECT_FALSE(trainer->diverged(0));
  EXPECT_FALSE(trainer->diverged(1));
  const std::vector<float> good = trainer->parameters(1).back();
  std::vector<float> bad = good;
  bad[0] = std::numeric_limits<float>::infinity();
  const size_t last = trainer->shapes().size() - 1;
  trainer->set_values(1, last, bad);
  trainer->differentiate(both);
  trainer->set_values(1, last, good);
  trainer->differentiate(both);
  EXPECT_FALSE(trainer->diverged(0));
  EXPECT_TRUE(trainer->diverged(1));
  trainer->begin_round(1, RandomStream({3, "round"}));
  EXPECT_FALSE(trainer->diverged(1));
}

// With equal gradients the second step of a round is longer than its first; the first of the next is not.
TEST(CpuTrainer, TheVelocityIsOfARound) {
  const auto trainer = some_trainer(1);
  const std::vector<uint16_t> labels = {1};
  const std::vector<std::span<const uint16_t>> one = {labels};
  const size_t last = trainer->shapes().size() - 1;  // the dense layer's bias
  trainer->differentiate(one);
  std::vector<float> gradient;
  trainer->get_gradient(0, last, &gradient);
  const auto step = [&] {
    std::vector<float> before, after;
    trainer->get_values(0, last, &before);
    trainer->descend(0, {.rate = 0.5f, .momentum = 0.5f});
    trainer->get_values(0, last, &after);
    return before[0] - after[0];
  };
  EXPECT_NEAR(step(), 0.5f * gradient[0], 1e-6);
  EXPECT_NEAR(step(), 0.75f * gradient[0], 1e-6);
  trainer->begin_round(0, RandomStream({3, "round"}));
  EXPECT_NEAR(step(), 0.5f * gradient[0], 1e-6);
}

TEST(CpuTrainer, ConvolutionsDecay) {
  const auto trainer = some_trainer(1);
  for (const ParameterShape& shape : trainer->shapes())
    EXPECT_EQ(shape.decays, shape.name.ends_with(".convolution.weights")) << shape.name;
}

}  // namespace
}  // namespace bitfed
