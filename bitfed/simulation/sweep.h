#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bitfed/base/config.h"
#include "bitfed/simulation/experiment.h"

namespace bitfed {

// One key of a recipe and the values to try, from "model.sensitivity=3,5,10". Commas within brackets, braces
// and quotes belong to a value: "model.patch=[3,3],[5,5]".
struct GridAxis {
  std::string key;
  std::vector<std::string> values;
};
GridAxis parse_grid_axis(const std::string& text);

// One combination of values with one seed.
struct SweepRun {
  size_t number = 0;                // in the plan
  size_t cell = 0;                  // runs of one combination share it
  std::vector<std::string> values;  // one per axis
  uint64_t seed = 0;
  std::filesystem::path folder;  // an ordinary run folder
};

// Every combination, the last axis fastest, each with every seed. Folders are named by the values:
// OUT/model.sensitivity-3/seed-0. A key, or a seed, that comes twice is an input_error, as is "seed" as a
// key.
std::vector<SweepRun> plan_sweep(const std::vector<GridAxis>& axes, const std::vector<uint64_t>& seeds,
                                 const std::filesystem::path& out);

// The runs by what their clients train: those that differ in the method's settings alone may share uploads,
// and are best run one after the other by the same process.
std::vector<std::vector<SweepRun>> group_sweep(const std::vector<GridAxis>& axes,
                                               const std::vector<SweepRun>& runs);

struct SweepOptions {
  std::string recipe;                  // the file
  std::vector<std::string> overrides;  // as --set, before the grid's
  std::vector<GridAxis> axes;
  unsigned jobs = 1;             // runs at once
  ExperimentOptions experiment;  // of every run, but for its folder, what is there already and what it reuses
  // Runs one; empty: run_experiment.
  std::function<ExperimentResult(const SweepRun&, const Experiment&, const ExperimentOptions&)> run = {};
};

// Reads the experiment of a run.
Experiment load_sweep_run(const SweepOptions& options, const SweepRun& run);

// Reads an experiment of each combination that has runs to do: a setting that one of them refuses is an error
// that names it, before the first run; so is an override that the grid or the seeds would replace.
void check_sweep(const SweepOptions& options, const std::vector<SweepRun>& runs);

// Called for every finished run, by one thread at a time, in the order in which they finish.
using SweepProgress = std::function<void(const SweepRun& run, const ExperimentResult& result)>;

// Runs or resumes all of them. A one-shot run whose clients would train what another one's have trained (same
// data, model, client settings and seed) takes those uploads. The first error stops the sweep, after the runs
// that are under way; what is finished is kept.
void run_sweep(const SweepOptions& options, const std::vector<SweepRun>& runs, const SweepProgress& progress);

}  // namespace bitfed
