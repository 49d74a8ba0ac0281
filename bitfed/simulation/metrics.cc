#include "bitfed/simulation/metrics.h"

namespace bitfed {
namespace {

template <typename T>
std::optional<double> scaled(const std::optional<T>& value, double factor) {
  return value ? std::optional(static_cast<double>(*value) * factor) : std::nullopt;
}

std::optional<double> training_per_client(const RunSummary& run) {
  if (run.clients.value_or(0) == 0) return std::nullopt;
  return scaled(run.train_seconds, 1 / static_cast<double>(*run.clients));
}

}  // namespace

const std::vector<Metric>& metrics() {
  using Run = const RunSummary&;
  static const std::vector<Metric> kMetrics = {
      {"accuracy", "%", 2, false, [](Run run) { return scaled(run.accuracy, 100); }},
      {"f1", "%", 2, false, [](Run run) { return scaled(run.f1_micro, 100); }},
      {"f1-macro", "%", 2, false, [](Run run) { return scaled(run.f1_macro, 100); }},
      {"balanced", "%", 2, false, [](Run run) { return scaled(run.balanced_accuracy, 100); }},
      {"local", "%", 2, false, [](Run run) { return scaled(run.local_accuracy_mean, 100); }},
      {"binarised", "%", 2, false, [](Run run) { return scaled(run.binarized_accuracy, 100); }},
      {"upload", "MB", 3, true, [](Run run) { return scaled(run.upload_bytes_per_client, 1e-6); }},
      {"model", "MB", 3, true, [](Run run) { return scaled(run.model_bytes, 1e-6); }},
      {"upload-kb", "KB", 2, true, [](Run run) { return scaled(run.upload_bytes_per_client, 1e-3); }},
      {"model-kb", "KB", 2, true, [](Run run) { return scaled(run.model_bytes, 1e-3); }},
      {"size", "KiB", 2, true, [](Run run) { return scaled(run.model_bytes, 1.0 / 1024); }},
      // As the FedBNN paper counts.
      {"paper-memory", "MB", 4, true, [](Run run) { return scaled(run.model_bytes_paper, 1e-6); }},
      {"paper-flops", "million", 2, true, [](Run run) { return scaled(run.flops_paper, 1e-6); }},
      // Of an upload on LoRaWAN's slowest radio, 300 bit/s.
      {"airtime", "s", 0, true, [](Run run) { return scaled(run.upload_bytes_per_client, 8.0 / 300); }},
      {"aggregation", "s", 4, true, [](Run run) { return run.aggregation_seconds; }},
      {"training", "s", 2, true, training_per_client},
  };
  return kMetrics;
}

}  // namespace bitfed
