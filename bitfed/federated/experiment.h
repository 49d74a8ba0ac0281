#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bitfed/base/config.h"
#include "bitfed/data/partition/partition.h"
#include "bitfed/federated/evaluation.h"
#include "bitfed/run/events.h"
#include "bitfed/federated/method.h"

namespace bitfed {

// When a round of a real federation begins and ends; the recipe's [federation]. A simulation, whose clients
// are always there, does not read it.
struct RoundPolicy {
  uint32_t minimum_clients = 1;  // a round begins once so many are there
  double quorum = 1;             // and ends as soon as this part of the chosen clients has answered,
  double deadline_seconds = 0;   // or after so long (0: no deadline) with the answers that there are,
  uint32_t least_answers = 1;    // at least so many
};

// Everything that a recipe says, read and checked before anything is written.
struct Experiment {
  std::string name;
  uint64_t seed = 0;
  Dataset train;
  EvaluationData evaluation;
  std::vector<std::string> data_notes;
  PartitionSpec partition_spec;
  Partition partition;  // empty where the clients bring their own data
  std::unique_ptr<Method> method;
  uint32_t rounds = 1;
  uint32_t clients = 1;
  uint32_t clients_per_round = 1;
  double dropout = 0;
  bool select_by_validation = false;  // see FederationOptions
  RoundPolicy policy;
  std::string recipe;      // as resolved
  std::string data;        // of the recipe, what tells which samples of a built-in set are for testing
  std::string depends_on;  // what uploads depend on, see FederationOptions
};

enum class ClientsAre { kSimulated, kReal };

Experiment read_experiment(const Config& recipe, const std::string& default_name, const std::string& data_dir,
                           ClientsAre clients);

// "Dir(0.1), 10 clients", or that they bring their own.
std::string partition_text(const Experiment& experiment);

Event started_event(const Experiment& experiment, const Config& recipe);

}  // namespace bitfed
