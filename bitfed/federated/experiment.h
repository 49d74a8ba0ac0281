#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bitfed/base/config.h"
#include "bitfed/data/partition/partition.h"
#include "bitfed/federated/evaluation.h"
#include "bitfed/federated/method.h"
#include "bitfed/federated/privacy/differential_privacy.h"
#include "bitfed/federated/privacy/privacy_recipe.h"
#include "bitfed/run/events.h"

namespace bitfed {

// When a round of a real federation begins and ends; the recipe's [federation]. A simulation, whose clients
// are always there, does not read it.
struct RoundPolicy {
  uint32_t minimum_clients = 1;  // a round begins once this many clients are ready
  double quorum = 1;             // and ends when this fraction of the chosen clients has answered,
  double deadline_seconds = 0;   // or after this time (0: no deadline) with the answers that there are,
  uint32_t min_answers = 1;      // at least this many
};

// Everything that a recipe says, read and checked before anything is written.
struct Experiment {
  std::string name;
  std::string method_name;
  std::string model_name;
  uint64_t seed = 0;
  Dataset train;
  EvaluationData evaluation;
  std::vector<std::string> data_notes;
  std::vector<std::string> dropped_keys;  // of the recipe file, for what --set replaced
  PartitionSpec partition_spec;
  Partition partition;  // empty where the clients bring their own data
  std::unique_ptr<Method> method;
  uint32_t rounds = 1;
  uint32_t clients = 1;
  uint32_t clients_per_round = 1;
  std::vector<uint32_t> without;  // clients that take part in no round, ascending
  double dropout = 0;
  bool select_by_validation = false;  // see FederationOptions
  uint32_t evaluate_every = 1;
  std::optional<DifferentialPrivacy> differential_privacy;  // empty: none
  bool served = false;                                      // clients are real
  RoundPolicy policy;
  PrivacyRecipe privacy;
  std::string recipe;       // as resolved
  std::string device;       // that networks are trained on; empty: the CPU
  std::string data;         // of the recipe, the keys that decide which samples are for testing
  std::string trained_on;   // the fingerprint of `train` where the recipe names files; else empty
  std::string fingerprint;  // of the training data
  std::string depends_on;   // what uploads depend on, see FederationOptions
};

enum class ClientsAre { kSimulated, kReal };

using MakeMethod = std::function<std::unique_ptr<Method>(const MethodContext& context)>;

// Reads a recipe against data that is there already, wherever it comes from: files, a generator, or arrays in
// memory. Then the recipe's [data] has neither name nor file, only how the data is used: partition, evaluate,
// booleanize. `default_name` is the run's name where the recipe gives none. `make` gives the method: by
// default the one that the recipe names; a program can bring one of its own.
Experiment read_experiment(const Config& recipe, DataSplit data, const std::string& default_name,
                           ClientsAre clients, const MakeMethod& make = make_method);

// The same with the data that the recipe's [data] names, looked for in `data_dir` first. `trainers`: of the
// device that networks are trained on, null for the CPU's; they must outlive the experiment.
Experiment load_experiment(const Config& recipe, const std::string& data_dir, const std::string& default_name,
                           ClientsAre clients, const Trainers* trainers = nullptr);

// Changes with any sample: a checksum of the values, a digest of the labels.
std::string fingerprint(const Dataset& dataset);

// Changes with any sample, for training, testing or validation, and with the person or the client that a
// sample belongs to: a line each. In about the time that the samples take to be read from memory.
std::string data_text(const Experiment& experiment);

// "Dir(0.1), 10 clients", or that they bring their own.
std::string partition_text(const Experiment& experiment);

RunStarted started_event(const Experiment& experiment);

}  // namespace bitfed
