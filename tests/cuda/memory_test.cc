// What happens where a cohort does not fit the GPU's memory, and where the GPU cannot be used. Emulated: a
// real GPU cannot be told how much memory it has.

#include "bitfed/cuda/device.h"

#ifdef BITFED_CUDA_EMULATED

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "bitfed/cuda/cuda_trainer.h"
#include "bitfed/simulation/experiment.h"
#include "bitfed/zoo/network/network_builder.h"
#include "bitfed/zoo/network/network_recipe.h"
#include "cli/device.h"
#include "tests/base/error_text.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

Dataset images(size_t count) {
  Dataset data;
  data.name = "made here";
  data.height = data.width = 8;
  data.channels = 1;
  data.pixel_mean = {0.5f};
  data.pixel_std = {0.25f};
  data.class_names = {"dark", "light"};
  RandomStream random({7, "images"});
  for (size_t i = 0; i < count; ++i) {
    data.labels.push_back(static_cast<uint16_t>(i % 2));
    for (size_t pixel = 0; pixel < 64; ++pixel)
      data.pixels.push_back(static_cast<uint8_t>(random.below(150) + 100 * (i % 2)));
  }
  return data;
}

constexpr const char* kRecipe = R"(
name = "tiny"
rounds = 4
[data]
partition = { kind = "iid", clients = 4 }
[model]
name = "custom"
layers = ["convolution 16 real", "norm", "hardtanh", "convolution 16", "norm", "hardtanh", "average-pool", "dense classes"]
[method]
name = "fedbnn"
[federation]
clients_per_round = 4
[client]
epochs = 1
batch = 4
momentum = 0.9
)";

class MemoryTest : public testing::Test {
 protected:
  ~MemoryTest() override { cuda::emulate_device({}); }

  RunSummary run(const std::string& folder, std::shared_ptr<const Trainers> trainers) const {
    ExperimentOptions options;
    options.out = folder_ / folder;
    options.threads = 1;
    options.trainers = std::move(trainers);
    const auto make = [&](MethodContext context) {
      context.trainers = options.trainers.get();
      return make_method(context);
    };
    const Experiment experiment = read_experiment(
        Config::parse(kRecipe, "tiny.toml"), {images(16), images(8)}, "tiny", ClientsAre::kSimulated, make);
    return run_experiment(experiment, options, [](const Event&) {}).summary;
  }

  // Bytes that a cohort of so many clients of the recipe takes, and its allocations.
  static std::pair<size_t, size_t> cost_of(size_t clients) {
    const Config recipe = Config::parse(kRecipe, "tiny.toml");
    const NetworkSpec spec = read_network(recipe, images(2), true);
    const size_t bytes = cuda::emulated_bytes();
    const size_t allocations = cuda::emulated_allocations();
    const auto trainer = cuda::make_trainers(64).make({spec, RotatedOptions()}, clients, 4);
    return {cuda::emulated_bytes() - bytes, cuda::emulated_allocations() - allocations};
  }

  TemporaryFolder folder_;
};

// The velocities, too: where they were allocated in the first step, that step ended the program.
TEST_F(MemoryTest, ATrainerAllocatesAllThatItNeedsAtOnce) {
  const Config recipe = Config::parse(kRecipe, "tiny.toml");
  const NetworkSpec spec = read_network(recipe, images(2), true);
  const auto trainer = cuda::make_trainers(64).make({spec, RotatedOptions()}, 1, 4);
  const size_t allocations = cuda::emulated_allocations();
  Network network = make_trained_network({spec, RotatedOptions()}, 1, RandomStream({1, "network"}));
  trainer->set_parameters(parameters_of(network));
  trainer->begin_round(0, RandomStream({2, "round"}));
  trainer->begin_epoch(0, 0);
  const std::vector<uint8_t> pixels(64);
  trainer->load(0, 0, pixels);
  const std::vector<uint16_t> labels = {0};
  const std::vector<std::span<const uint16_t>> spans = {labels};
  trainer->differentiate(spans);
  trainer->descend(0, {.rate = 0.1f, .momentum = 0.9f, .decay = 1e-3f});
  trainer->end_round(0);
  trainer->parameters(0);
  EXPECT_EQ(cuda::emulated_allocations(), allocations);
}

TEST_F(MemoryTest, ACohortThatDoesNotFitIsTrainedInHalves) {
  const RunSummary whole = run("whole", std::make_shared<Trainers>(cuda::make_trainers(64)));
  const size_t free = cuda::emulated_bytes();
  for (const size_t fitting : {2, 1}) {
    // The largest cohort of which there is one; networks that were used last are kept.
    cuda::emulate_device({.memory = free + cost_of(fitting).first});
    const RunSummary parts =
        run("parts-" + std::to_string(fitting), std::make_shared<Trainers>(cuda::make_trainers(64)));
    EXPECT_EQ(parts.model_sha256, whole.model_sha256);
    cuda::emulate_device({});
  }
  cuda::emulate_device({.memory = free + cost_of(1).first - 1});
  EXPECT_THAT(error_text([&] { run("none", std::make_shared<Trainers>(cuda::make_trainers(64))); }),
              HasSubstr("bytes of memory for a cohort of 1 clients"));
}

// A later round knows what fits, and has its network still.
TEST_F(MemoryTest, TheSizeThatFitsIsRemembered) {
  const auto [bytes, allocations] = cost_of(2);
  const NetworkSpec spec = read_network(Config::parse(kRecipe, "tiny.toml"), images(2), true);
  const TrainedNetwork network{spec, RotatedOptions()};
  const Trainers trainers = cuda::make_trainers(64);
  cuda::emulate_device({.memory = cuda::emulated_bytes() + bytes});
  EXPECT_THROW(trainers.make(network, 4, 4), TrainerTooLarge);
  trainers.make(network, 2, 4).reset();
  const size_t before = cuda::emulated_allocations();
  for (int round = 0; round < 3; ++round) {
    EXPECT_THROW(trainers.make(network, 4, 4), TrainerTooLarge);
    trainers.make(network, 2, 4).reset();
  }
  EXPECT_EQ(cuda::emulated_allocations(), before);
}

// Where others had the memory and have given it back, a larger cohort is tried again.
TEST_F(MemoryTest, WhatDidNotFitBesideOthersMayFitAlone) {
  const NetworkSpec spec = read_network(Config::parse(kRecipe, "tiny.toml"), images(2), true);
  const TrainedNetwork network{spec, RotatedOptions()};
  const size_t four = cost_of(4).first;
  const Trainers trainers = cuda::make_trainers(64);
  cuda::emulate_device({.memory = cuda::emulated_bytes() + four});
  auto other = trainers.make(network, 1, 4);
  EXPECT_THROW(trainers.make(network, 4, 4), TrainerTooLarge);
  other.reset();
  EXPECT_NE(trainers.make(network, 4, 4), nullptr);
}

TEST_F(MemoryTest, AutoTakesTheCpuWhereTheGpuIsUnfit) {
  cuda::emulate_device(
      {.refusal = "--device cuda:0: found an old GPU of compute capability 7.5, expected 9.0 or later"});
  testing::internal::CaptureStderr();
  EXPECT_EQ(cli::open_device("auto"), nullptr);
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      "bitfed: --device cuda:0: found an old GPU of compute capability 7.5, expected 9.0 or later; training on "
      "the CPU\n");
  EXPECT_THAT(error_text([] { cli::open_device("cuda"); }), HasSubstr("compute capability 7.5"));
  cuda::emulate_device({});
  EXPECT_THAT(cli::open_device("auto")->device, HasSubstr("emulated on the CPU"));
  EXPECT_EQ(cli::open_device("cpu"), nullptr);
}

// However much it is: given back and asked for again in every round it would cost more than the copies.
TEST_F(MemoryTest, FreedMemoryIsKept) {
  ASSERT_NE(cli::open_device("cuda"), nullptr);
  std::free(std::malloc(1));
  void* large = std::malloc(size_t{3} << 30);  // never touched
  ASSERT_NE(large, nullptr);
  const void* end = sbrk(0);
  std::free(large);
  EXPECT_EQ(sbrk(0), end);
}

}  // namespace
}  // namespace bitfed

#endif
