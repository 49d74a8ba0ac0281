#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bitfed/simulation/experiment.h"
#include "bitfed/simulation/paper_table.h"

namespace bitfed {

struct ReproductionOptions {
  std::filesystem::path cells;  // the folder of all run folders
  bool quick = false;           // a trial: the first seed alone, with the table's quick overrides
  // Keys that replace those of recipe, table and row, such as "client.precision=tf32". Cells with them have
  // folders of their own.
  std::vector<std::string> set = {};
};

// One run: the federation of a row with one seed, fused by one method.
struct ReproductionCell {
  size_t row = 0;
  int64_t seed = 0;
  std::string method;
  std::string dataset;           // a built-in set; empty: the recipe names a file or a folder
  std::string file;              // that file or folder
  std::filesystem::path folder;  // an ordinary run folder, named by what is run, so that tables share it
  std::filesystem::path reuse;   // the run whose clients it fuses; empty: trains its own
  std::string kind;              // of work, for TimeEstimate
  double cost = 0;               // clauses times passes over the data
};

// The seeds in effect.
std::vector<int64_t> seeds_of(const PaperTable& table, const ReproductionOptions& options);

// The cells of all rows, in the order to run them. A recipe that is missing or cannot be read is an
// input_error that names the row.
std::vector<ReproductionCell> plan_cells(const PaperTable& table, const ReproductionOptions& options);

// Reads the experiment of a cell, from the folder of data and for the device of `experiment`.
Experiment load_cell(const PaperTable& table, const ReproductionOptions& options,
                     const ReproductionCell& cell, const ExperimentOptions& experiment);

// Runs or resumes the cell with the options of `experiment`, except for folder, reuse and what to do with an
// existing run, which are set here. `run` runs it; by default run_experiment.
using RunExperiment =
    std::function<ExperimentResult(const Experiment&, const ExperimentOptions&, const EventSink&)>;
ExperimentResult run_cell(const PaperTable& table, const ReproductionOptions& options,
                          const ReproductionCell& cell, ExperimentOptions experiment, const EventSink& events,
                          const RunExperiment& run = {});

// The summary of a finished cell; empty: it is not finished.
std::optional<RunSummary> finished_summary(const ReproductionCell& cell);

}  // namespace bitfed
