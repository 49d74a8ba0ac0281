// A training step of the perceptron 14-64-32-16-6 on a batch of 32, as a gateway takes it, and predictions of
// the trained model, each beside the same by the plain loops, that is on the level "scalar"; training steps
// of CNN4, real and with rotated binary weights, and the rotation itself; the convolutions of a step in
// Eigen.

#include <benchmark/benchmark.h>

#include <array>

#include "benchmarks/eigen_convolution.h"
#include "bitfed/bits/kernels.h"
#include "bitfed/nn/mlp/mlp_trainer.h"
#include "bitfed/zoo/mlp_model.h"
#include "bitfed/zoo/network/network_builder.h"

namespace bitfed {
namespace {

constexpr size_t kBatch = 32;

MlpShape shape(bool binary) {
  return {{14, 64, 32, 16, 6}, binary};
}

// Runs the rest of the benchmark on another level.
class OnLevel {
 public:
  explicit OnLevel(const char* level) : before_(kernels().name) {
    if (level != nullptr) force_kernels(level);
  }
  ~OnLevel() { force_kernels(before_); }
  OnLevel(const OnLevel&) = delete;
  OnLevel& operator=(const OnLevel&) = delete;

 private:
  const char* before_;
};

void train(benchmark::State& state, bool binary, const char* level) {
  const OnLevel on(level);
  MlpTrainer trainer(shape(binary), kBatch, {});
  trainer.load(initial_parameters(shape(binary), RandomStream({.purpose = "benchmark"})));
  RandomStream random({.purpose = "data"});
  std::vector<uint16_t> labels;
  for (size_t r = 0; r < kBatch; ++r) {
    for (size_t i = 0; i < 14; ++i) trainer.input(r)[i] = static_cast<float>(random.normal());
    labels.push_back(static_cast<uint16_t>(random.below(6)));
  }
  for (auto _ : state) benchmark::DoNotOptimize(trainer.step(labels));
  state.counters["steps_per_second"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(train, binary, true, nullptr)->Name("mlp-binary");
BENCHMARK_CAPTURE(train, full, false, nullptr)->Name("mlp-full");
BENCHMARK_CAPTURE(train, binary_plain, true, "scalar")->Name("plain-mlp-binary");
BENCHMARK_CAPTURE(train, full_plain, false, "scalar")->Name("plain-mlp-full");

void predict(benchmark::State& state, const char* level) {
  const OnLevel on(level);
  const MlpModel model(shape(true), {std::vector<float>(14, 0), std::vector<float>(14, 1)},
                       initial_parameters(shape(true), RandomStream({.purpose = "benchmark"})));
  RandomStream random({.purpose = "data"});
  Dataset data;
  data.columns.resize(14);
  data.labels.resize(4096);
  for (size_t i = 0; i < data.size() * 14; ++i) data.values.push_back(static_cast<float>(random.normal()));
  ThreadPool pool(1);
  for (auto _ : state) benchmark::DoNotOptimize(model.scores(data, pool));
  state.counters["samples_per_second"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(data.size()),
                         benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(predict, binary, nullptr)->Name("predict-mlp-binary")->UseRealTime();
BENCHMARK_CAPTURE(predict, plain, "scalar")->Name("plain-predict-mlp-binary")->UseRealTime();

NetworkSpec network_spec(const std::string& name, bool binary) {
  NetworkSpec spec;
  spec.name = name;
  spec.binary = binary;
  const bool small = name == "cnn4";
  spec.width = small ? 32 : 64;
  spec.height = spec.image_width = small ? 28 : 32;
  spec.channels = small ? 1 : 3;
  spec.classes = 10;
  spec.mean = spec.deviation = std::vector<float>(spec.channels, 0.5f);
  return spec;
}

// Training steps, batches of 64: CNN4 on 28 x 28 images of one channel, ResNet10 on 32 x 32 of three.
void train_network(benchmark::State& state, const char* name, bool binary) {
  const NetworkSpec spec = network_spec(name, binary);
  const RandomStream random({.purpose = "benchmark"});
  constexpr size_t kImages = 64;
  Network network =
      binary ? make_rotated_network(spec, {}, kImages, random) : make_network(spec, kImages, random);
  network.set_anchor();
  network.begin_epoch(0.5);
  RandomStream pixels({.purpose = "pixels"});
  std::vector<uint16_t> labels;
  for (size_t i = 0; i < kImages; ++i) {
    std::vector<uint8_t> image(size_t{spec.height} * spec.image_width * spec.channels);
    for (uint8_t& pixel : image) pixel = static_cast<uint8_t>(pixels.below(256));
    load_image(spec, image, i, &network);
    labels.push_back(static_cast<uint16_t>(pixels.below(10)));
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(network.differentiate(labels));
    network.descend({.rate = 0.01f});
  }
  state.counters["steps_per_second"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(train_network, cnn4, "cnn4", false)->Name("cnn4-real")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(train_network, cnn4_rotated, "cnn4", true)
    ->Name("cnn4-rotated")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(train_network, resnet10, "resnet10", false)
    ->Name("resnet10-real")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(train_network, resnet10_rotated, "resnet10", true)
    ->Name("resnet10-rotated")
    ->Unit(benchmark::kMillisecond);

#ifdef BITFED_EIGEN
// What a step of CNN4 comes to in plain Eigen, convolutions alone: neither norms nor activations, pools, the
// dense layer or the descent.
void eigen_cnn4(benchmark::State& state) {
  constexpr size_t kImages = 64;
  std::vector<std::unique_ptr<EigenConvolution>> layers;
  for (const auto& [side, inputs, outputs] :
       {std::array<size_t, 3>{28, 1, 32}, {14, 32, 64}, {7, 64, 128}, {3, 128, 256}})
    layers.push_back(std::make_unique<EigenConvolution>(kImages, side, inputs, outputs));
  for (auto _ : state) {
    for (const auto& layer : layers) layer->forward();
    for (size_t i = layers.size(); i-- > 0;) layers[i]->backward(i > 0);
    benchmark::DoNotOptimize(layers[0]->any_output());
  }
  state.counters["steps_per_second"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(eigen_cnn4)->Name("eigen-cnn4-convolutions")->Unit(benchmark::kMillisecond);
#endif

// Rotated CNN4 by two threads, each a client of its own, as a federation does it: steps a second of both.
BENCHMARK_CAPTURE(train_network, cnn4_rotated_pair, "cnn4", true)
    ->Name("cnn4-rotated-clients")
    ->Unit(benchmark::kMillisecond)
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime();

// The three iterations of the rotation at the start of an epoch, all layers.
void rotate_network(benchmark::State& state, const char* name) {
  Network network =
      make_rotated_network(network_spec(name, true), {}, 1, RandomStream({.purpose = "benchmark"}));
  network.set_anchor();
  for (auto _ : state) network.begin_epoch(0.5);
  state.counters["steps_per_second"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(rotate_network, cnn4, "cnn4")->Name("cnn4-rotation")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(rotate_network, resnet10, "resnet10")
    ->Name("resnet10-rotation")
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace bitfed

BENCHMARK_MAIN();
