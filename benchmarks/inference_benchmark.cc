// Predictions of deployed binary networks, one core: CNN4 and ResNet10 on images of 32 x 32 x 3, in batches
// of 64 and one by one; a convolution of 3 x 3 from 128 to 128 channels on 16 x 16 pixels (with its pool),
// beside the same in floats, ours and Eigen's.

#include <benchmark/benchmark.h>

#include "benchmarks/eigen_convolution.h"
#include "bitfed/bits/bit_matrix.h"
#include "bitfed/nn/convolution/convolution.h"
#include "bitfed/nn/kernels/binary_kernels.h"
#include "bitfed/zoo/network/network_model.h"

namespace bitfed {
namespace {

NetworkModel binary_network(const char* name, uint32_t width) {
  NetworkSpec spec;
  spec.name = name;
  spec.width = width;
  spec.binary = true;
  spec.height = spec.image_width = 32;
  spec.channels = 3;
  spec.classes = 10;
  spec.mean = spec.deviation = {0.5f, 0.5f, 0.5f};
  Network network = make_network(spec, 1, RandomStream({.purpose = "benchmark"}));
  RandomStream random({.purpose = "norms"});
  for (Parameter* parameter : network.parameters()) {
    std::vector<float> numbers = parameter->to_vector();
    for (float& number : numbers) {
      if (parameter->name.ends_with(".shift")) number = static_cast<float>(0.3 * random.normal());
      if (parameter->name.ends_with(".variance")) number = 200;
    }
    parameter->assign(numbers);
  }
  return {spec, parameters_of(network)};
}

void predict(benchmark::State& state, const char* name, uint32_t width) {
  const NetworkModel model = binary_network(name, width);
  Dataset images;
  images.height = images.width = 32;
  images.channels = 3;
  images.labels.resize(static_cast<size_t>(state.range(0)));
  RandomStream random({.purpose = "pixels"});
  for (size_t i = 0; i < images.size() * images.image_bytes(); ++i)
    images.pixels.push_back(static_cast<uint8_t>(random.below(256)));
  ThreadPool pool(1);
  for (auto _ : state) benchmark::DoNotOptimize(model.scores(images, pool));
  state.counters["samples_per_second"] = benchmark::Counter(
      static_cast<double>(state.iterations() * state.range(0)), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(predict, cnn4, "cnn4", 32)->Name("cnn4-32")->Arg(64)->Arg(1)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(predict, resnet10, "resnet10", 64)
    ->Name("resnet10-32")
    ->Arg(64)
    ->Arg(1)
    ->Unit(benchmark::kMicrosecond);

constexpr size_t kSide = 16;
constexpr size_t kChannels = 128;

void count_convolution(benchmark::State& state) {
  state.counters["samples_per_second"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void binary_convolution(benchmark::State& state) {
  constexpr size_t kWords = kChannels / 32;
  constexpr size_t kRow = (kSide + 2) * kWords;
  RandomStream random({.purpose = "signs"});
  AlignedVector<uint32_t> image((kSide + 2) * kRow);
  AlignedVector<uint32_t> filters(9 * kWords * kChannels);
  for (uint32_t& word : image) word = random.next_u32();
  for (uint32_t& word : filters) word = random.next_u32();
  std::vector<uint32_t> places;
  for (size_t y = 0; y < kSide; y += 2) {
    for (size_t x = 0; x < kSide; x += 2) {
      for (size_t corner = 0; corner < 4; ++corner)
        places.push_back(static_cast<uint32_t>((y + corner / 2) * kRow + (x + corner % 2) * kWords));
    }
  }
  const std::vector<uint8_t> cases(places.size());
  const AlignedVector<int32_t> bases(kChannels, 9 * kChannels);
  const Matrix factor(1, kChannels);
  Floats out(places.size() / 4 * kChannels);
  for (auto _ : state) {
    binary_kernels().sign_pools({image.data(), places.data(), cases.data(), places.size() / 4, 3, kRow,
                                 3 * kWords, filters.data(), kChannels, bases.data()},
                                {factor.row(0), factor.row(0), out.data()});
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  count_convolution(state);
}
BENCHMARK(binary_convolution)->Name("convolution-binary")->Unit(benchmark::kMicrosecond);

void float_convolution(benchmark::State& state) {
  const ImageShape shape{kSide, kSide, kChannels, 1};
  Convolution convolution(1, shape, kChannels, "c");
  convolution.initialise(RandomStream({.purpose = "weights"}));
  Images input(1, shape);
  RandomStream random({.purpose = "values"});
  for (size_t i = 0; i < shape.image_floats(); ++i) input.data()[i] = static_cast<float>(random.normal());
  for (auto _ : state) {
    convolution.forward(input, 1, Pass::kPrediction);
    benchmark::DoNotOptimize(convolution.output().data());
    benchmark::ClobberMemory();
  }
  count_convolution(state);
}
BENCHMARK(float_convolution)->Name("convolution-float")->Unit(benchmark::kMicrosecond);

#ifdef BITFED_EIGEN
void eigen_convolution(benchmark::State& state) {
  EigenConvolution convolution(1, kSide, kChannels, kChannels);
  for (auto _ : state) {
    convolution.forward();
    benchmark::DoNotOptimize(convolution.any_output());
  }
  count_convolution(state);
}
BENCHMARK(eigen_convolution)->Name("eigen-convolution-float")->Unit(benchmark::kMicrosecond);
#endif

}  // namespace
}  // namespace bitfed

BENCHMARK_MAIN();
