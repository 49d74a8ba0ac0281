#include "bitfed/report/pages/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>

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
  using enum Better;
  using enum Shown;
  static const std::vector<ComparedQuantity> kQuantities = {
      {"accuracy", "", kHigher, field<&RunSummary::accuracy>, percent},
      {"macro F1", "", kHigher, field<&RunSummary::f1_macro>, percent, kOnPageWhereKnown},
      {"balanced", "", kHigher, field<&RunSummary::balanced_accuracy>, percent, kOnPageWhereKnown},
      {"binarised", "", kHigher, field<&RunSummary::binarized_accuracy>, percent, kWhereKnown},
      {"own models", "", kHigher, field<&RunSummary::local_accuracy_mean>, percent, kWhereKnown},
      {"upload / client", "bytes", kLower, field<&RunSummary::upload_bytes_per_client>, human_bytes},
      {"download / client", "bytes", kLower, field<&RunSummary::download_bytes_per_client>, human_bytes,
       kOnPageWhereKnown},
      {"total upload", "bytes", kLower, field<&RunSummary::total_upload_bytes>, human_bytes,
       kOnPageWhereKnown},
      {"model", "bytes", kLower, field<&RunSummary::model_bytes>, human_bytes},
      {"training", "seconds", kLower, field<&RunSummary::train_seconds>, human_seconds},
      {"aggregation", "seconds", kLower, field<&RunSummary::aggregation_seconds>, human_seconds},
      {"evaluation", "seconds", kLower, field<&RunSummary::evaluation_seconds>, human_seconds,
       kOnPageWhereKnown},
      {"wall time", "seconds", kLower, field<&RunSummary::wall_seconds>, human_seconds, kOnPageWhereKnown,
       true},
  };
  return kQuantities;
}

namespace {

std::vector<ComparedQuantity> shown_quantities(const std::vector<RunFolder>& runs, bool on_page) {
  std::vector<ComparedQuantity> chosen;
  for (const ComparedQuantity& quantity : compared_quantities()) {
    const auto has_it = [&](const RunFolder& run) { return quantity.value(run).has_value(); };
    const bool is_known = std::any_of(runs.begin(), runs.end(), has_it);
    if (quantity.shown == Shown::kAlways || (is_known && (on_page || quantity.shown == Shown::kWhereKnown)))
      chosen.push_back(quantity);
  }
  return chosen;
}

}  // namespace

std::vector<ComparedQuantity> page_quantities(const std::vector<RunFolder>& runs) {
  return shown_quantities(runs, true);
}

std::vector<ComparedQuantity> terminal_quantities(const std::vector<RunFolder>& runs) {
  return shown_quantities(runs, false);
}

std::vector<size_t> best_runs(const std::vector<RunFolder>& runs, const ComparedQuantity& quantity) {
  std::vector<size_t> best;
  double best_value = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::optional<double> value = quantity.value(runs[i]);
    if (!value || (quantity.is_of_trained && runs[i].summary.reused_uploads.value_or(0) > 0)) continue;
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
  const std::array<std::string (*)(const RunFolder&), 4> ways = {
      [](const RunFolder& run) { return run.summary.name; },
      [](const RunFolder& run) { return fmt::format("{}, {}", run.summary.name, run.summary.method); },
      [](const RunFolder& run) {
        return fmt::format("{}, {}, seed {}", run.summary.name, run.summary.method,
                           run.summary.seed.value_or(0));
      },
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
  // A folder that was given twice, or a name that looks like another's label.
  std::set<std::string> taken;
  for (std::string& label : labels) {
    const std::string plain = label;
    for (size_t number = 2; !taken.insert(label).second; ++number)
      label = fmt::format("{} #{}", plain, number);
  }
  return labels;
}

namespace {

// The recipe as resolved, without its seed; empty where the run has none.
std::string recipe_without_seed(const RunFolder& run) {
  std::string kept;
  size_t begin = 0;
  while (begin < run.recipe.size()) {
    const size_t end = std::min(run.recipe.find('\n', begin), run.recipe.size());
    const std::string_view line = std::string_view(run.recipe).substr(begin, end - begin);
    // The top-level keys come before the first table.
    const bool is_seed = line.starts_with("seed =") && kept.find("\n[") == std::string::npos;
    if (!is_seed) kept += std::string(line) + '\n';
    begin = end + 1;
  }
  return kept;
}

bool has_seed(const std::vector<RunFolder>& runs, const SeedGroup& group, uint64_t seed) {
  return std::any_of(group.runs.begin(), group.runs.end(),
                     [&](size_t run) { return runs[run].summary.seed == seed; });
}

// The folder that holds the group's runs and no others, as in a sweep; else that of its first run.
std::string folder_of(const std::vector<RunFolder>& runs, const SeedGroup& group) {
  const std::filesystem::path folder = runs[group.runs.front()].folder;
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool is_of_group = std::find(group.runs.begin(), group.runs.end(), i) != group.runs.end();
    if (is_of_group != (runs[i].folder.parent_path() == folder.parent_path())) return folder.string();
  }
  return folder.parent_path().string();
}

}  // namespace

std::vector<SeedGroup> seed_groups(const std::vector<RunFolder>& runs) {
  std::vector<SeedGroup> groups;
  std::map<std::string, size_t> known;  // recipe -> its group
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::string recipe = recipe_without_seed(runs[i]);
    const std::optional<uint64_t> seed = runs[i].summary.seed;
    if (recipe.empty() || !seed) continue;
    const auto [place, is_new] = known.try_emplace(recipe, groups.size());
    if (is_new) groups.push_back({fmt::format("{}, {}", runs[i].summary.name, runs[i].summary.method), {}});
    SeedGroup& group = groups[place->second];
    if (!has_seed(runs, group, *seed)) group.runs.push_back(i);
  }
  std::erase_if(groups, [](const SeedGroup& group) { return group.runs.size() < 2; });
  std::map<std::string, size_t> alike;
  for (const SeedGroup& group : groups) ++alike[group.label];
  for (SeedGroup& group : groups) {
    if (alike[group.label] > 1) group.label += fmt::format(" ({})", folder_of(runs, group));
  }
  return groups;
}

std::optional<Spread> spread_of(const std::vector<double>& values) {
  if (values.size() < 2) return std::nullopt;
  const auto count = static_cast<double>(values.size());
  Spread spread{.mean = std::accumulate(values.begin(), values.end(), 0.0) / count, .count = values.size()};
  for (const double value : values) spread.deviation += (value - spread.mean) * (value - spread.mean);
  spread.deviation = std::sqrt(spread.deviation / (count - 1));
  return spread;
}

std::string spread_text(const std::vector<RunFolder>& runs, const SeedGroup& group,
                        const ComparedQuantity& quantity) {
  std::vector<double> values;
  for (const size_t run : group.runs) {
    if (const std::optional<double> value = quantity.value(runs[run])) values.push_back(*value);
  }
  const std::optional<Spread> spread = spread_of(values);
  if (!spread) return "–";
  return fmt::format("{} ± {}", quantity.text(spread->mean), quantity.text(spread->deviation));
}

namespace {

// A row for each group of seeds; "" where there is none.
std::string seeds_text(const std::vector<RunFolder>& runs, const std::vector<ComparedQuantity>& quantities) {
  const std::vector<SeedGroup> groups = seed_groups(runs);
  if (groups.empty()) return "";
  TextRows table = {{"mean ± sample deviation", "seeds"}};
  for (const ComparedQuantity& quantity : quantities) table[0].push_back(quantity.name);
  for (const SeedGroup& group : groups) {
    std::vector<std::string> row = {group.label, fmt::format("{}", group.runs.size())};
    for (const ComparedQuantity& quantity : quantities) row.push_back(spread_text(runs, group, quantity));
    table.push_back(std::move(row));
  }
  return "\n" + aligned(table);
}

}  // namespace

std::string comparison_text(const std::vector<RunFolder>& runs) {
  TextRows table;
  std::vector<std::string>& head = table.emplace_back();
  head.emplace_back("run");
  const std::vector<ComparedQuantity> quantities = terminal_quantities(runs);
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
  return aligned(table) + seeds_text(runs, quantities);
}

}  // namespace bitfed
