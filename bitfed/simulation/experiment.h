#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "bitfed/base/config.h"
#include "bitfed/run/events.h"
#include "bitfed/run/run_folder_writer.h"

namespace bitfed {

struct ExperimentOptions {
  std::filesystem::path out;  // empty: runs/NAME
  std::string default_name = "run";
  std::string data_dir;
  unsigned threads = 0;  // 0: one per processor
  RunFolderWriter::Existing existing = RunFolderWriter::Existing::kRefuse;
  std::filesystem::path reuse;  // another run's folder to take the uploads from
  std::function<bool()> stop;
  std::string version;
};

struct ExperimentResult {
  std::filesystem::path folder;
  Event summary;  // as in summary.json
};

// Simulates the federation of a recipe and writes the run's folder: recipe, events, checkpoints, model and
// summary. `events` hears what is logged and the clients' progress besides.
ExperimentResult run_experiment(const Config& recipe, const ExperimentOptions& options,
                                const EventSink& events);

}  // namespace bitfed
