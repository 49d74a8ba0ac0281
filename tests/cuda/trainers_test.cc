// The GPU's trainer beside the CPU's: the same bits in every parameter after some steps. Where there is no
// GPU, its kernels run on the CPU (cuda/emulation.h).

#include <gtest/gtest.h>

#include <cstring>

#include "bitfed/cuda/cuda_trainer.h"
#include "bitfed/zoo/network/network_builder.h"
#include "bitfed/zoo/network/network_recipe.h"
#include "bitfed/zoo/network/trainer.h"

namespace bitfed {
namespace {

struct Case {
  const char* name;
  const char* model;  // lines of [model]
  size_t side = 16;
  size_t channels = 1;
  std::optional<RotatedOptions> rotated = RotatedOptions();
  std::vector<size_t> images = {4, 2, 1};  // of every client's batch
  Descent descent = {.rate = 0.05f};
  size_t steps = 3;
};

NetworkSpec spec_of(const Case& of) {
  Dataset data;
  data.height = data.width = of.side;
  data.channels = of.channels;
  data.pixel_mean.assign(of.channels, 0.5f);
  data.pixel_std.assign(of.channels, 0.25f);
  data.class_names = {"a", "b", "c"};
  const Config recipe = Config::parse(std::string("[model]\n") + of.model, "recipe.toml");
  return read_network(recipe, data, of.rotated.has_value());
}

// Steps of all clients; the parameters of each, and those of its network after two of the steps.
std::vector<NetworkParameters> train(const Case& of, const NetworkSpec& spec, Trainer* trainer) {
  Network network = make_trained_network({spec, of.rotated}, 1, RandomStream({1, "network"}));
  const size_t clients = of.images.size();
  RandomStream draws({2, "pixels"});
  trainer->set_parameters(parameters_of(network));
  for (size_t client = 0; client < clients; ++client) {
    trainer->begin_round(client, RandomStream({3, "round", 1, client}));
  }
  std::vector<std::vector<uint16_t>> labels(clients);
  for (size_t step = 0; step < of.steps; ++step) {
    std::vector<std::span<const uint16_t>> spans(clients);
    for (size_t client = 0; client < clients; ++client) {
      if (step % 2 == 0) trainer->begin_epoch(client, 0.3 + 0.2 * static_cast<double>(step));
      // The last client is idle in the second step.
      const size_t images = step == 1 && client + 1 == clients ? 0 : of.images[client];
      labels[client].clear();
      for (size_t i = 0; i < images; ++i) {
        std::vector<uint8_t> pixels(of.side * of.side * of.channels);
        for (uint8_t& pixel : pixels) pixel = static_cast<uint8_t>(draws.next_u32());
        trainer->load(client, i, pixels);
        labels[client].push_back(static_cast<uint16_t>(draws.below(3)));
      }
      spans[client] = labels[client];
    }
    trainer->differentiate(spans);
    for (size_t client = 0; client < clients; ++client) {
      if (!labels[client].empty()) trainer->descend(client, of.descent);
    }
  }
  std::vector<NetworkParameters> all;
  for (size_t client = 0; client < clients; ++client) trainer->end_round(client);
  for (size_t client = 0; client < clients; ++client) {
    all.push_back(trainer->parameters(client));
    EXPECT_FALSE(trainer->diverged(client));
  }
  return all;
}

class TrainersTest : public testing::TestWithParam<Case> {};

TEST_P(TrainersTest, GiveTheSameBits) {
  if (cuda::device_count() == 0) GTEST_SKIP() << "no GPU";
  const Case& of = GetParam();
  const NetworkSpec spec = spec_of(of);
  const size_t batch = *std::max_element(of.images.begin(), of.images.end());
  const auto cpu = make_cpu_trainer({spec, of.rotated}, of.images.size(), batch);
  const auto expected = train(of, spec, cpu.get());
  const auto gpu = cuda::make_trainers(64).make({spec, of.rotated}, of.images.size(), batch);
  const auto found = train(of, spec, gpu.get());
  ASSERT_EQ(cpu->shapes().size(), gpu->shapes().size());
  for (size_t client = 0; client < expected.size(); ++client) {
    for (size_t p = 0; p < expected[client].size(); ++p) {
      const std::vector<float>& a = expected[client][p];
      const std::vector<float>& b = found[client][p];
      ASSERT_EQ(a.size(), b.size());
      size_t different = 0;
      size_t first = 0;
      for (size_t i = a.size(); i-- > 0;) {
        if (std::memcmp(&a[i], &b[i], sizeof(float)) == 0) continue;
        ++different;
        first = i;
      }
      EXPECT_EQ(different, 0u) << "client " << client << ", " << cpu->shapes()[p].name << " of " << a.size()
                               << ", [" << first << "]: " << a[first] << " and " << b[first];
    }
  }
}

constexpr const char* kCustom =
    "name = \"custom\"\nlayers = [\"convolution 6 kernel=5 bias\", \"relu\", \"max-pool 2\", \"dropout 0.25\", "
    "\"convolution 9 stride=2 valid\", \"norm\", \"relu\", \"block 20 stride=2\", \"average-pool 2\", \"dense 24 bias\", "
    "\"relu\", \"dense classes bias\"]\n";
constexpr const char* kBinaryCustom =
    "name = \"custom\"\nlayers = [\"convolution 16 real\", \"norm\", \"hardtanh\", \"convolution 32 kernel=5 stride=2\", "
    "\"norm\", \"hardtanh\", \"max-pool 3\", \"convolution 16 kernel=1\", \"norm\", \"hardtanh\", \"dense classes\"]\n";

// Channels and images as large as a block of the tensor cores takes at once.
constexpr const char* kWide =
    "name = \"custom\"\nlayers = [\"convolution 64 real\", \"norm\", \"hardtanh\", \"convolution 128\", "
    "\"norm\", \"hardtanh\", \"convolution 128\", \"norm\", \"hardtanh\", \"average-pool\", "
    "\"dense classes\"]\n";

const RotatedOptions kPlain{.lambda = false, .beta = false};

INSTANTIATE_TEST_SUITE_P(
    All, TrainersTest,
    testing::Values(
        Case{"Cnn4", "name = \"cnn4\"\nwidth = 16\n"},
        Case{"Cnn4OfColours", "name = \"cnn4\"\nwidth = 16\n", 18, 3, kPlain, {5, 3}},
        Case{"RealCnn4", "name = \"cnn4\"\nwidth = 16\n", 16, 3, std::nullopt},
        Case{"Resnet10", "name = \"resnet10\"\nwidth = 16\n", 8, 3},
        Case{"Resnet10Orthogonal",
             "name = \"resnet10\"\nwidth = 16\n",
             8,
             3,
             RotatedOptions{.rotation = RotationUpdate::kEveryEpochOrthogonal},
             {2, 3}},
        Case{"Resnet10Fixed",
             "name = \"resnet10\"\nwidth = 16\n",
             8,
             3,
             RotatedOptions{.lambda = false, .rotation = RotationUpdate::kFixed},
             {2, 3}},
        Case{"RealResnet10", "name = \"resnet10\"\nwidth = 16\n", 8, 3, std::nullopt},
        Case{"StaticSigns", "name = \"cnn4\"\nwidth = 16\ndeploy = \"static\"\n"},
        Case{"ShortcutsOfConvolutions",
             "name = \"resnet10\"\nwidth = 16\nshortcuts = \"convolution\"\n",
             8,
             3,
             kPlain,
             {3, 2},
             {0.05f, 0.9f, 0.0f}},
        Case{"WithoutRotation",
             "name = \"cnn4\"\nwidth = 16\n",
             16,
             1,
             RotatedOptions{.lambda = false, .rotation = RotationUpdate::kNone},
             {3, 2}},
        Case{"Custom", kCustom, 17, 2, std::nullopt, {4, 3}},
        Case{"BinaryCustom", kBinaryCustom, 12, 1, kPlain, {3, 2}},
        Case{"Wide", kWide, 16, 1, kPlain, {2, 1}, {.rate = 0.05f}, 1},
        Case{"Momentum", "name = \"cnn4\"\nwidth = 16\n", 16, 1, kPlain, {4, 2}, {0.05f, 0.9f, 5e-4f}},
        Case{"RealMomentum",
             "name = \"cnn4\"\nwidth = 16\n",
             16,
             1,
             std::nullopt,
             {4, 2},
             {0.05f, 0.9f, 5e-4f}}),
    [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace bitfed
