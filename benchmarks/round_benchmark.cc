// What a simulation does between two rounds of training on a device: the clients' uploads reach the server
// half and are added up, the new model is broadcast and handed to evaluation. Ten clients of FedAvg's
// ResNet10 (4.9 million parameters), whose training takes no time. Argument: threads.

#include <benchmark/benchmark.h>

#include "bitfed/base/stopwatch.h"
#include "bitfed/federated/federation.h"
#include "bitfed/simulation/in_process_transport.h"

namespace bitfed {
namespace {

constexpr uint32_t kClients = 10;
constexpr uint32_t kRounds = 4;

constexpr const char* kRecipe = R"(
rounds = 1000
[model]
name = "resnet10"
[method]
name = "fedavg"
)";

Dataset colour_images() {
  Dataset data;
  data.height = data.width = 32;
  data.channels = 3;
  data.pixel_mean.assign(3, 0.5f);
  data.pixel_std.assign(3, 0.25f);
  data.class_names = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  return data;
}

// A device that trains ten clients in no time: each upload is what was broadcast, a little changed.
struct Device : ClientHalf {
  State train(const State&, const Dataset&, const ClientContext&) const override { return {}; }
  size_t cohort() const override { return kClients; }
  std::vector<CohortUpload> train_cohort(const State& broadcast, std::span<const CohortClient> clients,
                                         ThreadPool*) const override {
    const Stopwatch clock;
    std::vector<CohortUpload> uploads(clients.size());
    for (size_t i = 0; i < clients.size(); ++i) {
      for (const Tensor& tensor : broadcast.tensors()) {
        if (tensor.shape.empty()) continue;
        std::vector<float> values =
            broadcast.values<float>(tensor.name, std::vector<uint64_t>(tensor.shape.size(), State::kAny));
        for (float& value : values) value *= 1 + 0.001f * static_cast<float>(i);
        uploads[i].upload.add(tensor.name, tensor.shape, values);
      }
      uploads[i].upload.add_scalar<uint32_t>("samples", 500);
    }
    seconds += clock.seconds();
    return uploads;
  }
  mutable double seconds = 0;
};

struct NoStore : RoundStore {
  void put(uint32_t, const ClientResult&, const std::string&) override {}
  std::optional<ClientResult> find(uint32_t, uint32_t, const std::string&) const override { return {}; }
  void remove_round(uint32_t) override {}
  void save(uint32_t, const State&) override {}
  std::optional<State> load() const override { return {}; }
};

void between_rounds(benchmark::State& state) {
  ThreadPool pool(static_cast<unsigned>(state.range(0)));
  const Config recipe = Config::parse(kRecipe, "recipe");
  const Dataset prototype = colour_images();
  const auto method = make_method({.recipe = recipe, .prototype = prototype, .seed = 1});
  const Partition partition(kClients);
  ClientStates states("unused", kClients);
  for (auto _ : state) {
    const Device device;
    const auto server = method->make_server();
    server->use(pool);
    const auto transport =
        make_in_process_transport({}, device, prototype, partition, states, pool, [](const Event&) {});
    NoStore store;
    FederationOptions options;
    options.rounds = kRounds;
    options.clients = options.clients_per_round = kClients;
    options.checkpoint_seconds = options.keep_seconds = 1e9;
    options.ends_beside = true;
    Federation federation(
        options, *server, *transport, store,
        [](const Model& model) {
          benchmark::DoNotOptimize(&model);
          return Evaluation();
        },
        [](const Event&) {});
    const Stopwatch clock;
    federation.run();
    state.SetIterationTime((clock.seconds() - device.seconds) / kRounds);
  }
}
BENCHMARK(between_rounds)
    ->Name("between_rounds/threads")
    ->Arg(1)
    ->Arg(2)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace bitfed

BENCHMARK_MAIN();
