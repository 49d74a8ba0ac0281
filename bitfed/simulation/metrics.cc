#include "bitfed/simulation/metrics.h"

namespace bitfed {
namespace {

std::optional<double> field(const Event& summary, const char* name) {
  const auto found = summary.find(name);
  return found != summary.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

std::optional<double> scaled(const Event& summary, const char* name, double factor) {
  const std::optional<double> value = field(summary, name);
  return value ? std::optional(*value * factor) : std::nullopt;
}

std::optional<double> training_of_a_client(const Event& summary) {
  const std::optional<double> clients = field(summary, "clients");
  return clients && *clients > 0 ? scaled(summary, "train_seconds", 1 / *clients) : std::nullopt;
}

}  // namespace

const std::vector<Metric>& metrics() {
  static const std::vector<Metric> kMetrics = {
      {"accuracy", "%", 2, false, [](const Event& s) { return scaled(s, "accuracy", 100); }},
      {"f1", "%", 2, false, [](const Event& s) { return scaled(s, "f1_micro", 100); }},
      {"local", "%", 2, false, [](const Event& s) { return scaled(s, "local_accuracy_mean", 100); }},
      {"binarised", "%", 2, false, [](const Event& s) { return scaled(s, "binarized_accuracy", 100); }},
      {"upload", "MB", 3, true, [](const Event& s) { return scaled(s, "upload_bytes_per_client", 1e-6); }},
      {"model", "MB", 3, true, [](const Event& s) { return scaled(s, "model_bytes", 1e-6); }},
      {"size", "KiB", 2, true, [](const Event& s) { return scaled(s, "model_bytes", 1.0 / 1024); }},
      // As the FedBNN paper counts.
      {"paper-memory", "MB", 4, true, [](const Event& s) { return scaled(s, "model_bytes_paper", 1e-6); }},
      {"paper-flops", "million", 2, true, [](const Event& s) { return scaled(s, "flops_paper", 1e-6); }},
      // Of an upload on LoRaWAN's slowest radio, 300 bit/s.
      {"airtime", "s", 0, true,
       [](const Event& s) { return scaled(s, "upload_bytes_per_client", 8.0 / 300); }},
      {"aggregation", "s", 4, true, [](const Event& s) { return field(s, "aggregation_seconds"); }},
      {"training", "s", 2, true, training_of_a_client},
  };
  return kMetrics;
}

}  // namespace bitfed
