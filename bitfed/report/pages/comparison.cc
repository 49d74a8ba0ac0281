#include "bitfed/report/pages/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bitfed/report/humanise.h"
#include "bitfed/report/pages/aligned.h"

namespace bitfed {
namespace {

template <auto Field>
std::optional<double> field(const RunFolder& run) {
  const auto& value = run.summary.*Field;
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

}  // namespace

const std::vector<ComparedQuantity>& compared_quantities() {
  static const std::vector<ComparedQuantity> kQuantities = {
      {"accuracy", "", Better::kHigher, field<&RunSummary::accuracy>, percent},
      {"binarised", "", Better::kHigher, field<&RunSummary::binarized_accuracy>, percent, true},
      {"own models", "", Better::kHigher, field<&RunSummary::local_accuracy_mean>, percent, true},
      {"upload / client", "bytes", Better::kLower, field<&RunSummary::upload_bytes_per_client>, human_bytes},
      {"download / client", "bytes", Better::kLower, field<&RunSummary::download_bytes_per_client>,
       human_bytes},
      {"total upload", "bytes", Better::kLower, field<&RunSummary::total_upload_bytes>, human_bytes},
      {"model", "bytes", Better::kLower, field<&RunSummary::model_bytes>, human_bytes},
      {"training", "seconds", Better::kLower, field<&RunSummary::train_seconds>, human_seconds},
      {"aggregation", "seconds", Better::kLower, field<&RunSummary::aggregation_seconds>, human_seconds},
      {"evaluation", "seconds", Better::kLower, field<&RunSummary::evaluation_seconds>, human_seconds},
      {"wall time", "seconds", Better::kLower, field<&RunSummary::wall_seconds>, human_seconds},
  };
  return kQuantities;
}

std::vector<ComparedQuantity> compared_quantities(const std::vector<RunFolder>& runs) {
  std::vector<ComparedQuantity> shown;
  for (const ComparedQuantity& quantity : compared_quantities()) {
    const auto has_it = [&](const RunFolder& run) { return quantity.value(run).has_value(); };
    if (!quantity.is_rare || std::any_of(runs.begin(), runs.end(), has_it)) shown.push_back(quantity);
  }
  return shown;
}

std::vector<size_t> best_runs(const std::vector<RunFolder>& runs, const ComparedQuantity& quantity) {
  std::vector<size_t> best;
  double best_value = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::optional<double> value = quantity.value(runs[i]);
    if (!value) continue;
    const bool beats = quantity.better == Better::kHigher ? *value > best_value : *value < best_value;
    if (best.empty() || beats) {
      best = {i};
      best_value = *value;
    } else if (*value == best_value) {
      best.push_back(i);
    }
  }
  return best;
}

std::vector<std::string> run_labels(const std::vector<RunFolder>& runs) {
  // The shortest way of naming a run that no other run shares.
  const std::array<std::string (*)(const RunFolder&), 3> ways = {
      [](const RunFolder& run) { return run.summary.name; },
      [](const RunFolder& run) { return fmt::format("{}, {}", run.summary.name, run.summary.method); },
      [](const RunFolder& run) { return fmt::format("{} ({})", run.summary.name, run.folder.string()); }};
  std::vector<std::string> labels;
  for (const RunFolder& run : runs) {
    const auto is_unique = [&](const auto way) {
      return std::count_if(runs.begin(), runs.end(),
                           [&](const RunFolder& other) { return way(other) == way(run); }) == 1;
    };
    const auto chosen = std::find_if(ways.begin(), ways.end() - 1, is_unique);
    labels.push_back((*chosen)(run));
  }
  return labels;
}

std::string comparison_text(const std::vector<RunFolder>& runs) {
  TextRows table;
  std::vector<std::string>& head = table.emplace_back();
  head.emplace_back("run");
  const std::vector<ComparedQuantity> quantities = compared_quantities(runs);
  for (const ComparedQuantity& quantity : quantities) head.push_back(quantity.name);
  const std::vector<std::string> labels = run_labels(runs);
  for (size_t i = 0; i < runs.size(); ++i) {
    std::vector<std::string> row = {labels[i]};
    for (const ComparedQuantity& quantity : quantities) {
      const std::optional<double> value = quantity.value(runs[i]);
      row.push_back(value ? quantity.text(*value) : "–");
    }
    table.push_back(std::move(row));
  }
  return aligned(table);
}

}  // namespace bitfed
