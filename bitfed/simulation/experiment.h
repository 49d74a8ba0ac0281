#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bitfed/base/config.h"
#include "bitfed/federated/experiment.h"
#include "bitfed/run/events.h"
#include "bitfed/run/run_folder_writer.h"
#include "bitfed/run/summary.h"

namespace bitfed {

class ClientStates;
class Transport;

struct ExperimentOptions {
  std::filesystem::path out;  // empty: runs/NAME
  std::string default_name = "run";
  std::string data_dir;
  unsigned threads = 0;  // 0: one per processor
  RunFolderWriter::Existing existing = RunFolderWriter::Existing::kRefuse;
  std::filesystem::path reuse;  // another run's folder to take the uploads from
  std::function<bool()> stop;
  std::string version;
  // Who trains the clients instead of this process's threads; empty: these.
  std::function<std::unique_ptr<Transport>(const Experiment&, ClientStates&, const EventSink&)> transport;
  std::function<Evaluation(const Model&)> evaluate_elsewhere;  // see RunHooks
  std::vector<std::string> rank_hosts;                         // see RunHooks
  std::string rank_device;                                     // see RunHooks
  std::shared_ptr<const Trainers> trainers;  // of the device that networks are trained on; null: the CPU's
};

struct ExperimentResult {
  std::filesystem::path folder;
  RunSummary summary;
};

// Simulates the federation of a recipe and writes the run's folder: recipe, events, checkpoints, model and
// summary. `events` receives what is logged and the clients' progress.
ExperimentResult run_experiment(const Config& recipe, const ExperimentOptions& options,
                                const EventSink& events);

// The same for an experiment that was read already, such as one on arrays in memory.
ExperimentResult run_experiment(const Experiment& experiment, const ExperimentOptions& options,
                                const EventSink& events);

}  // namespace bitfed
