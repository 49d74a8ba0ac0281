#pragma once

#include <functional>
#include <string>

#include "bitfed/base/thread_pool.h"
#include "bitfed/federated/experiment.h"
#include "bitfed/mpi/communicator.h"
#include "bitfed/mpi/launcher.h"

namespace bitfed {

struct WorkerOptions {
  std::string program;  // see program_identity
  std::string host = host_name();
  unsigned threads = 1;  // clients trained at once
  unsigned processors = processor_count();
  std::function<bool()> stop;
  // Reads the experiment of a job. All ranks have the same command line: a job is its number.
  std::function<Experiment(uint32_t job)> load;
  // Runs a job without the other ranks; empty: there are none such.
  std::function<void(uint32_t job, const std::function<bool()>& stop)> run_alone;
};

// A rank other than 0, see RankZero: trains the clients that rank 0 sends, until rank 0 ends. Errors go to
// rank 0, which reports them.
void run_worker(Communicator& ranks, const WorkerOptions& options);

// What is compared between ranks: equal texts, equal experiments.
std::string experiment_text(const Experiment& experiment);

}  // namespace bitfed
