#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bitfed/mpi/client_threads.h"
#include "bitfed/mpi/communicator.h"
#include "bitfed/mpi/worker.h"
#include "bitfed/simulation/experiment.h"

namespace bitfed {

// Rank 0's side: holds the federation, its store and the method's server half, and has the clients trained by
// the other ranks and by threads of its own. Every error of a rank is thrown here, with the rank and its
// host. The other ranks end with this object.
class RankZero {
 public:
  // `own`: of this rank as a worker; with 0 threads it trains nobody. `warn` receives what does not stop a
  // run, a line each.
  RankZero(Communicator& ranks, const WorkerOptions& own, std::function<void(const std::string&)> warn = {});
  ~RankZero();
  RankZero(const RankZero&) = delete;
  RankZero& operator=(const RankZero&) = delete;

  // Has all ranks read job number `job`, then runs it as run_experiment does. Nothing is written before all
  // ranks, which run the same program, have read the same experiment.
  ExperimentResult run(uint32_t job, const Experiment& experiment, ExperimentOptions options,
                       const EventSink& events);

  // Deals whole jobs, each to be run by one rank without the others, in order as ranks become free. `done` is
  // called after each. All ranks run the same program, or none begins. Error::Kind::kStopped if the user
  // stops it.
  void run_alone(const std::vector<uint32_t>& jobs, const std::function<bool()>& stop,
                 const std::function<void(uint32_t job, int rank)>& begun,
                 const std::function<void(uint32_t job)>& done);

  // Whether a worker each does so many jobs, no more than there are workers, sooner than all workers one job
  // after the other. `clients`: those that a job trains side by side.
  bool is_faster_alone(size_t jobs, uint32_t clients);

  // The ranks that train.
  int workers() const { return ranks_.size() - (own_ ? 0 : 1); }

 private:
  int others() const { return ranks_.size() - 1; }
  Evaluation evaluate(const Model& model, const EvaluationData& data);
  [[noreturn]] void throw_failure(int rank, const Failure& failure) const;
  void greet();
  std::string open(uint32_t job, const Experiment& experiment);
  std::string name(int rank) const;

  Communicator& ranks_;
  WorkerOptions options_;
  std::function<void(const std::string&)> warn_;
  bool has_greeted_ = false;
  std::vector<std::string> hosts_;    // by rank
  std::vector<uint32_t> threads_;     // that train clients, by rank
  std::optional<ClientThreads> own_;  // empty: this rank trains nobody
};

}  // namespace bitfed
