// Federations whose networks a device trains, several clients in one step: here the CPU's trainers in its
// place.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "bitfed/federated/client_round.h"
#include "bitfed/simulation/experiment.h"
#include "bitfed/zoo/network/trainer.h"
#include "tests/base/error_text.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

constexpr const char* kRecipe = R"(
name = "tiny"
rounds = 4
[data]
partition = { kind = "dirichlet", clients = 6, alpha = 0.5 }
evaluate = "second-half"
[model]
name = "cnn4"
width = 16
[method]
name = "fedbnn"
[federation]
clients_per_round = 4
select = "validation"
[client]
epochs = 2
batch = 8
)";

// Dark and light images of 16 x 16.
Dataset images(size_t count) {
  Dataset data;
  data.name = "made here";
  data.height = data.width = 16;
  data.channels = 1;
  data.pixel_mean = {0.5f};
  data.pixel_std = {0.25f};
  data.class_names = {"dark", "light"};
  RandomStream random({7, "images"});
  for (size_t i = 0; i < count; ++i) {
    data.labels.push_back(static_cast<uint16_t>(i % 2));
    for (size_t pixel = 0; pixel < 256; ++pixel)
      data.pixels.push_back(static_cast<uint8_t>(random.below(150) + 100 * (i % 2)));
  }
  return data;
}

// The CPU's trainers for cohorts. After so many steps of all together the device is gone.
std::shared_ptr<const Trainers> device(int steps = 1 << 30) {
  struct Vanishing : Trainer {
    Vanishing(std::unique_ptr<Trainer> trainer, std::shared_ptr<std::atomic<int>> steps_left)
        : own(std::move(trainer)), left(std::move(steps_left)) {}
    size_t clients() const override { return own->clients(); }
    const ParameterShapes& shapes() const override { return own->shapes(); }
    void set_parameters(const NetworkParameters& parameters) override { own->set_parameters(parameters); }
    NetworkParameters parameters(size_t client) const override { return own->parameters(client); }
    void set_values(size_t client, size_t p, std::span<const float> values) override {
      own->set_values(client, p, values);
    }
    void get_values(size_t client, size_t p, std::vector<float>* values) const override {
      own->get_values(client, p, values);
    }
    void get_gradient(size_t client, size_t p, std::vector<float>* values) const override {
      own->get_gradient(client, p, values);
    }
    void begin_round(size_t client, const RandomStream& random) override { own->begin_round(client, random); }
    void begin_epoch(size_t client, double progress) override { own->begin_epoch(client, progress); }
    void end_round(size_t client) override { own->end_round(client); }
    void load(size_t client, size_t index, std::span<const uint8_t> pixels) override {
      own->load(client, index, pixels);
    }
    void differentiate(std::span<const std::span<const uint16_t>> labels) override {
      if ((*left)-- <= 0) throw failure("GPU: training: it has fallen off the bus; the run can be resumed");
      own->differentiate(labels);
    }
    bool diverged(size_t client) override { return own->diverged(client); }
    void descend(size_t client, const Descent& descent) override { own->descend(client, descent); }
    std::unique_ptr<Trainer> own;
    std::shared_ptr<std::atomic<int>> left;
  };
  auto trainers = std::make_shared<Trainers>();
  trainers->cohort = 3;
  trainers->device = "a device";
  trainers->plain = true;
  trainers->make = [left = std::make_shared<std::atomic<int>>(steps)](const TrainedNetwork& network,
                                                                      size_t clients, size_t batch) {
    return std::make_unique<Vanishing>(make_cpu_trainer(network, clients, batch), left);
  };
  return trainers;
}

class DeviceTest : public testing::Test {
 protected:
  ExperimentResult run(const std::string& folder, std::shared_ptr<const Trainers> trainers) const {
    ExperimentOptions options;
    options.out = folder_ / folder;
    options.threads = 2;
    options.existing = RunFolderWriter::Existing::kResume;
    options.trainers = std::move(trainers);
    const Config recipe = Config::parse(kRecipe, "tiny.toml");
    const auto make = [&](MethodContext context) {
      context.trainers = options.trainers.get();
      return make_method(context);
    };
    Experiment experiment =
        read_experiment(recipe, {images(90), images(60)}, "tiny", ClientsAre::kSimulated, make);
    if (options.trainers) experiment.device = options.trainers->device;
    return run_experiment(experiment, options, [](const Event&) {});
  }

  TemporaryFolder folder_;
};

TEST_F(DeviceTest, GivesTheModelOfTheCpu) {
  const RunSummary cpu = run("cpu", nullptr).summary;
  const RunSummary gpu = run("gpu", device()).summary;
  EXPECT_EQ(gpu.model_sha256, cpu.model_sha256);
  EXPECT_EQ(gpu.model_round, cpu.model_round);
  EXPECT_EQ(gpu.accuracy, cpu.accuracy);
  EXPECT_EQ(gpu.device, "a device");
  EXPECT_EQ(cpu.device, std::nullopt);
}

// While a device trains, the thread that waits for it uses no processor: the time passes all the same.
TEST_F(DeviceTest, TrainSecondsAreThoseThatPass) {
  struct Waits : ClientHalf {
    explicit Waits(size_t clients) : own_cohort(clients) {}
    State train(const State&, const Dataset&, const ClientContext&) const override {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      return {};
    }
    size_t cohort() const override { return own_cohort; }
    size_t own_cohort;
  };
  const Dataset none;
  const Bytes kept;
  const State broadcast;
  const std::vector<ClientWork> clients = {{1, none, kept, {}}, {2, none, kept, {}}};
  const auto seconds = [&](const ClientHalf& half) {
    const auto outcomes = run_cohort({.half = half, .broadcast = broadcast, .stop = {}}, clients);
    return outcomes[0].result.train_seconds + outcomes[1].result.train_seconds;
  };
  EXPECT_GE(seconds(Waits(2)), 0.2);
  EXPECT_LT(seconds(Waits(1)), 0.1);  // of CPU time
}

// Wherever it happens: one line, and the run goes on on a CPU to the same model.
TEST_F(DeviceTest, ADeviceVanishesAndTheCpuGoesOn) {
  const RunSummary cpu = run("cpu", nullptr).summary;
  for (const int steps : {0, 5, 13, 25}) {
    const std::string name = std::to_string(steps);
    EXPECT_THAT(error_text([&] { run(name, device(steps)); }), HasSubstr("fallen off the bus"));
    EXPECT_EQ(run(name, nullptr).summary.model_sha256, cpu.model_sha256) << steps;
  }
}

// Several runs share a device, each on a thread of its own.
TEST_F(DeviceTest, RunsBesideEachOther) {
  const auto shared = device();
  std::vector<std::string> models(3);
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < models.size(); ++i) {
    threads.emplace_back(
        [&, i] { models[i] = run("beside-" + std::to_string(i), shared).summary.model_sha256; });
  }
  threads.clear();
  for (const std::string& model : models) EXPECT_EQ(model, run("alone", nullptr).summary.model_sha256);
}

}  // namespace
}  // namespace bitfed
