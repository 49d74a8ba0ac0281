// The server's side of FedTMOS: k-means over the clients' weight vectors, for federations of ten to ten
// thousand clients (eight classes a client, a hundred clauses a class, thirty clusters, ten starts). Reports
// the memory that k-means takes beside the vectors as well.

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "bitfed/base/hash/random.h"
#include "bitfed/federated/arithmetic/kmeans.h"

namespace bitfed {
namespace {

constexpr size_t kClasses = 8;
constexpr size_t kClauses = 100;
constexpr size_t kClusters = 30;

// Weight vectors as clients have them: small whole numbers about a pattern of their class.
std::vector<std::vector<double>> weight_vectors(size_t clients) {
  RandomStream random({.purpose = "server benchmark"});
  std::vector<std::vector<double>> patterns(kClasses, std::vector<double>(kClauses));
  for (auto& pattern : patterns) {
    for (double& weight : pattern) weight = random.below(60);
  }
  std::vector<std::vector<double>> vectors;
  vectors.reserve(clients * kClasses);
  for (size_t i = 0; i < clients * kClasses; ++i) {
    std::vector<double> vector = patterns[i % kClasses];
    for (double& weight : vector) weight += random.below(30);
    vectors.push_back(std::move(vector));
  }
  return vectors;
}

double peak_megabytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void kmeans_benchmark(benchmark::State& state) {
  const auto vectors = weight_vectors(static_cast<size_t>(state.range(0)));
  const double before = peak_megabytes();
  for (auto _ : state)
    benchmark::DoNotOptimize(kmeans(vectors, kClusters, 10, RandomStream({.purpose = "k"})));
  state.counters["vectors_MB"] = static_cast<double>(vectors.size() * kClauses * sizeof(double)) / 1e6;
  state.counters["more_MB"] = peak_megabytes() - before;
}
BENCHMARK(kmeans_benchmark)
    ->Name("kmeans/clients")
    ->Arg(10)
    ->Arg(100)
    ->Arg(1000)
    ->Arg(10000)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace bitfed

BENCHMARK_MAIN();
