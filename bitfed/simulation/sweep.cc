#include "bitfed/simulation/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "bitfed/base/error.h"
#include "bitfed/base/names.h"
#include "bitfed/federated/upload_store.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaximumRuns = 100000;

// "data.partition.alpha=0.05" -> "data.partition.alpha-0.05".
std::string folder_part(const std::string& key, const std::string& value) {
  std::string name = key + "-";
  for (const unsigned char c : value) {
    const bool is_plain = std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
    if (is_plain) name += static_cast<char>(c);
    if (c == ',') name += '_';
  }
  return name;
}

// Each key and each seed once: a second one would replace the first, or count a run twice in a mean.
void check_plan(const std::vector<GridAxis>& axes, const std::vector<uint64_t>& seeds) {
  std::set<std::string> keys;
  for (const GridAxis& axis : axes) {
    if (axis.key == "seed")
      throw input_error("--grid seed={}: found seeds, expected them in --seeds {}", joined(axis.values, ","),
                        joined(axis.values, ","));
    if (!keys.insert(axis.key).second)
      throw input_error("--grid {}: found it twice, expected all its values in one: {}=A,B", axis.key,
                        axis.key);
  }
  std::set<uint64_t> seen;
  for (const uint64_t seed : seeds) {
    if (!seen.insert(seed).second) throw input_error("--seeds: found {} twice", seed);
  }
}

// What --set gives must reach every run.
void check_overrides(const SweepOptions& options) {
  for (const std::string& text : options.overrides) {
    const std::string key = text.substr(0, text.find('='));
    if (key == "seed") throw input_error("--set {}: found a seed, expected it in --seeds", text);
    for (const GridAxis& axis : options.axes) {
      if (axis.key == key) throw input_error("--set {}: found a key of --grid, expected another one", text);
    }
  }
}

// Runs are taken in order by several threads.
class Sweep {
 public:
  Sweep(const SweepOptions& options, const std::vector<SweepRun>& runs, const SweepProgress& progress)
      : options_(options), runs_(runs), progress_(progress) {}

  void run() {
    std::vector<std::thread> others;
    const size_t jobs = std::min<size_t>(std::max(1u, options_.jobs), runs_.size());
    for (size_t i = 1; i < jobs; ++i) others.emplace_back([this] { work(); });
    work();
    for (std::thread& thread : others) thread.join();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void work() {
    while (const SweepRun* run = take()) {
      try {
        finish(*run);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
      }
    }
  }

  const SweepRun* take() {
    const std::lock_guard lock(mutex_);
    if (error_ || next_ == runs_.size()) return nullptr;
    return &runs_[next_++];
  }

  void finish(const SweepRun& run) {
    const Experiment experiment = load_sweep_run(options_, run);
    const bool can_share = experiment.rounds == 1;
    ExperimentOptions options = options_.experiment;
    options.out = run.folder;
    options.existing = RunFolderWriter::Existing::kResume;
    if (can_share) options.reuse = begin_training(experiment.depends_on);
    ExperimentResult result;
    try {
      result = run_one(run, experiment, options);
    } catch (...) {
      if (can_share) end_training(experiment.depends_on, {});
      throw;
    }
    if (can_share) end_training(experiment.depends_on, run.folder);
    const std::lock_guard lock(mutex_);
    progress_(run, result);
  }

  // Uploads of another method on the same clients; where they turn out not to be the same, clients train.
  ExperimentResult run_one(const SweepRun& run, const Experiment& experiment, ExperimentOptions options) {
    const auto go = [&] {
      return options_.run ? options_.run(run, experiment, options)
                          : run_experiment(experiment, options, [](const Event&) {});
    };
    if (options.reuse.empty() || !UploadStore(options.reuse / "checkpoint").has_round(1)) {
      options.reuse.clear();
      return go();
    }
    try {
      return go();
    } catch (const Error& error) {
      if (error.kind() != Error::Kind::kInput) throw;
      options.reuse.clear();
      return go();
    }
  }

  // The folder whose uploads are these; empty: nobody has trained them. Waits while another run trains them.
  fs::path begin_training(const std::string& uploads) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return training_.count(uploads) == 0; });
    if (const auto found = trained_.find(uploads); found != trained_.end()) return found->second;
    training_.insert(uploads);
    return {};
  }
  void end_training(const std::string& uploads, const fs::path& folder) {
    const std::lock_guard lock(mutex_);
    if (!folder.empty()) trained_.try_emplace(uploads, folder);
    training_.erase(uploads);
    changed_.notify_all();
  }

  const SweepOptions& options_;
  const std::vector<SweepRun>& runs_;
  const SweepProgress& progress_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t next_ = 0;
  std::exception_ptr error_;
  std::set<std::string> training_;           // what runs under way train
  std::map<std::string, fs::path> trained_;  // and which folder has it
};

}  // namespace

GridAxis parse_grid_axis(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw input_error("--grid {}: expected key=value,value as in model.sensitivity=3,5,10", text);
  GridAxis axis{text.substr(0, equals), {""}};
  int depth = 0;
  char quote = 0;
  for (const char c : text.substr(equals + 1)) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      axis.values.emplace_back();
      continue;
    }
    axis.values.back() += c;
  }
  std::set<std::string> seen;
  for (const std::string& value : axis.values) {
    if (value.empty()) throw input_error("--grid {}: found an empty value", text);
    if (!seen.insert(value).second) throw input_error("--grid {}: found {} twice", text, value);
  }
  return axis;
}

std::vector<SweepRun> plan_sweep(const std::vector<GridAxis>& axes, const std::vector<uint64_t>& seeds,
                                 const fs::path& out) {
  check_plan(axes, seeds);
  size_t cells = 1;
  for (const GridAxis& axis : axes) {
    cells *= axis.values.size();
    if (cells * seeds.size() > kMaximumRuns)
      throw input_error("--grid: found more than {} runs", kMaximumRuns);
  }
  std::vector<SweepRun> runs;
  std::set<std::string> names;
  for (size_t cell = 0; cell < cells; ++cell) {
    std::vector<std::string> values(axes.size());
    size_t rest = cell;
    for (size_t i = axes.size(); i-- > 0;) {
      values[i] = axes[i].values[rest % axes[i].values.size()];
      rest /= axes[i].values.size();
    }
    std::string name;
    for (size_t i = 0; i < axes.size(); ++i)
      name += (name.empty() ? "" : "+") + folder_part(axes[i].key, values[i]);
    if (name.empty()) name = "recipe";
    // Values that differ in what a folder's name cannot show.
    if (!names.insert(name).second) names.insert(name += fmt::format("+{}", cell));
    for (const uint64_t seed : seeds)
      runs.push_back({runs.size(), cell, values, seed, out / name / fmt::format("seed-{}", seed)});
  }
  return runs;
}

std::vector<std::vector<SweepRun>> group_sweep(const std::vector<GridAxis>& axes,
                                               const std::vector<SweepRun>& runs) {
  std::vector<std::vector<SweepRun>> groups;
  std::map<std::vector<std::string>, size_t> known;
  for (const SweepRun& run : runs) {
    std::vector<std::string> key = {std::to_string(run.seed)};
    for (size_t i = 0; i < axes.size(); ++i) {
      if (!axes[i].key.starts_with("method.")) key.push_back(run.values[i]);
    }
    const auto [entry, is_new] = known.try_emplace(key, groups.size());
    if (is_new) groups.emplace_back();
    groups[entry->second].push_back(run);
  }
  return groups;
}

Experiment load_sweep_run(const SweepOptions& options, const SweepRun& run) {
  Config recipe = Config::load(options.recipe);
  recipe.set_all(options.overrides);
  for (size_t i = 0; i < run.values.size(); ++i) recipe.set(options.axes[i].key, run.values[i]);
  recipe.set("seed", std::to_string(run.seed));
  return load_experiment(recipe, options.experiment.data_dir, options.experiment.default_name,
                         ClientsAre::kSimulated, options.experiment.trainers.get());
}

void check_sweep(const SweepOptions& options, const std::vector<SweepRun>& runs) {
  check_overrides(options);
  std::set<size_t> seen;
  for (const SweepRun& run : runs) {
    std::error_code code;
    if (fs::exists(run.folder / "summary.json", code) || !seen.insert(run.cell).second) continue;
    try {
      load_sweep_run(options, run);
    } catch (const Error& error) {
      std::vector<std::string> values;
      for (size_t i = 0; i < run.values.size(); ++i)
        values.push_back(options.axes[i].key + "=" + run.values[i]);
      throw Error(error.kind(), fmt::format("--grid {}: {}", joined(values, " "), error.what()));
    }
  }
}

void run_sweep(const SweepOptions& options, const std::vector<SweepRun>& runs,
               const SweepProgress& progress) {
  Sweep(options, runs, progress).run();
}

}  // namespace bitfed
