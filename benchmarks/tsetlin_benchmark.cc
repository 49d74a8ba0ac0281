// Speeds of Tsetlin machines on one core, on Fashion-MNIST: training under both update schemes (the mean of
// the first three epochs over 6,000 samples) and inference (10,000 samples). Each also as a multiple of the
// plain reference kernels in the same run.

#include <benchmark/benchmark.h>

#include <ctime>
#include <map>

#include "benchmarks/fashion_bits.h"
#include "bitfed/base/error.h"
#include "bitfed/bits/kernels.h"
#include "bitfed/tsetlin/machine/compiled_clauses.h"
#include "bitfed/tsetlin/machine/machine.h"

namespace bitfed {
namespace {

constexpr uint64_t kEpochs = 3;

struct Configuration {
  const char* name;
  const char* booleanizer;
  size_t patch;
  size_t clauses;
  int32_t threshold;
  double sensitivity;
};

constexpr Configuration kConfigurations[] = {{"flat_100", "threshold", 28, 100, 50, 10},
                                             {"flat_2000", "threshold", 28, 2000, 50, 10},
                                             {"ctm_10x10_100", "threshold", 10, 100, 1000, 5},
                                             {"ctm_5x5_200", "adaptive-gaussian", 5, 200, 1000, 5}};

const FashionBits& bits_for(const Configuration& configuration) {
  static std::map<std::string, FashionBits> loaded;
  const auto found = loaded.find(configuration.booleanizer);
  if (found != loaded.end()) return found->second;
  return loaded.emplace(configuration.booleanizer, load_fashion_bits(configuration.booleanizer))
      .first->second;
}

double core_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

TsetlinMachine train(const Configuration& configuration, UpdateScheme scheme, size_t samples) {
  const FashionBits& bits = bits_for(configuration);
  MachineOptions options;
  options.clauses = configuration.clauses;
  options.threshold = configuration.threshold;
  options.sensitivity = configuration.sensitivity;
  options.scheme = scheme;
  TsetlinMachine machine(options, {28, 28, 1, configuration.patch, configuration.patch}, 10);
  BitImages images = bits.train;
  images.count = samples;
  const std::span labels(bits.train_labels.data(), samples);
  for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    machine.train_epoch(images, labels, RandomStream({.purpose = "benchmark", .round = epoch}));
  }
  return machine;
}

// How many times as long `work` takes with the plain kernels as with those in use.
template <typename Work>
double times_plain(const Work& work) {
  const char* in_use = kernels().name;
  const auto seconds = [&work](const char* unit) {
    force_kernels(unit);
    const double start = core_seconds();
    work();
    return core_seconds() - start;
  };
  const double plain = seconds("scalar");
  return plain / seconds(in_use);
}

// Runs `work`, which does `samples` of them.
template <typename Work>
void measure(benchmark::State& state, size_t samples, const Work& work) {
  double seconds = 0;
  size_t done = 0;
  for (auto _ : state) {
    const double start = core_seconds();
    benchmark::DoNotOptimize(work());
    seconds += core_seconds() - start;
    done += samples;
  }
  state.counters["samples_per_second"] = static_cast<double>(done) / seconds;
}

void train_benchmark(benchmark::State& state, const Configuration& configuration, UpdateScheme scheme) {
  bits_for(configuration);  // loaded before the clock runs
  state.counters["times_plain"] = times_plain([&] { return train(configuration, scheme, 300); });
  measure(state, kTrainSamples * kEpochs, [&] { return train(configuration, scheme, kTrainSamples); });
}

void predict_benchmark(benchmark::State& state, const Configuration& configuration) {
  const FashionBits& bits = bits_for(configuration);
  const TsetlinMachine machine = train(configuration, UpdateScheme::kOneVsOneRandom, kTrainSamples);
  CompiledClauses clauses(member_of(machine, {}), 10);
  BitImages few = bits.test;
  few.count = 512;
  state.counters["times_plain"] = times_plain([&] { return class_sums(few, {&clauses}); });
  measure(state, bits.test.count, [&] { return class_sums(bits.test, {&clauses}); });
}

void register_all() {
  for (const Configuration& configuration : kConfigurations) {
    const std::string name = configuration.name;
    const auto add = [&](const std::string& what, auto function) {
      benchmark::RegisterBenchmark((name + "/" + what).c_str(), function)
          ->Unit(benchmark::kMillisecond)
          ->MeasureProcessCPUTime();
    };
    add("train_one_vs_all",
        [&](benchmark::State& state) { train_benchmark(state, configuration, UpdateScheme::kOneVsAll); });
    add("train_one_negative", [&](benchmark::State& state) {
      train_benchmark(state, configuration, UpdateScheme::kOneVsOneRandom);
    });
    add("predict", [&](benchmark::State& state) { predict_benchmark(state, configuration); });
  }
}

}  // namespace
}  // namespace bitfed

int main(int argc, char** argv) {
  try {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::AddCustomContext("instruction_set", bitfed::kernels().name);
    bitfed::register_all();
    benchmark::RunSpecifiedBenchmarks();
  } catch (const bitfed::Error& error) {
    fprintf(stderr, "bitfed_tsetlin_benchmark: %s\n", error.what());
    return 1;
  }
  return 0;
}
