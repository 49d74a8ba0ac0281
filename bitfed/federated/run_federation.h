#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "bitfed/base/stopwatch.h"
#include "bitfed/base/thread_pool.h"
#include "bitfed/federated/experiment.h"
#include "bitfed/federated/round_store.h"
#include "bitfed/federated/transport.h"
#include "bitfed/run/events.h"
#include "bitfed/run/summary.h"

namespace bitfed {

// What the surrounding program gives a run besides the transport and the store.
struct RunHooks {
  ThreadPool& pool;  // for evaluation and the server
  // Threads that evaluate a round while the next one trains; null: the round waits for its evaluation.
  // Clients must then keep no models of their own.
  ThreadPool* beside = nullptr;
  std::function<Evaluation(const Model&)> evaluate_elsewhere = {};  // instead of on the pool; empty: there
  EventSink events;
  std::filesystem::path folder;      // where model.safetensors and summary.json are written
  std::filesystem::path reuse = {};  // another run's folder to take the uploads from; empty: none
  double checkpoint_seconds = 1;     // the work that a crash may cost; 0: every upload and round is durable
  std::function<bool()> stop = {};   // the user wants to stop
  std::string version = {};          // of the program, for the summary
  std::vector<std::string> rank_hosts =
      {};                        // for the summary: the host of each process; empty: this one alone
  std::string rank_device = {};  // for the summary: what the other processes train on; empty: the CPU
  Stopwatch clock = {};          // the summary's wall_seconds count from its start
};

// Runs the federation of an experiment, or what is left of it, over any transport: the one place where
// method, round loop, evaluation, model file and summary are put together. Emits all events from the first
// round-started to run-finished; run-started is the caller's (see started_event). Error::Kind::kStopped if
// the user stopped it.
RunSummary run_federation(const Experiment& experiment, Transport& transport, RoundStore& store,
                          const RunHooks& hooks);

}  // namespace bitfed
