#pragma once

#include <optional>
#include <vector>

#include "bitfed/data/partition/partition.h"
#include "bitfed/federated/client_states.h"
#include "bitfed/federated/method.h"
#include "bitfed/run/summary.h"

namespace bitfed {

// Evaluates the models that clients keep for themselves, each on its own client's test samples: those of the
// same person where the clients are persons, else all.
class PersonalEvaluation {
 public:
  PersonalEvaluation(const Dataset& train, const Partition& partition, bool by_group, const Dataset& test);

  // The mean accuracy of the personal models that there are; empty: none.
  std::optional<double> mean_accuracy(const ClientHalf& client, const ClientStates& states,
                                      ThreadPool& pool) const;

  // A row per client. Empty where the method has no personal models.
  std::vector<ClientAccuracy> table(const Model& global, const ClientHalf& client, const ClientStates& states,
                                    ThreadPool& pool) const;

 private:
  const Dataset& test_of(uint32_t client) const { return by_group_ ? tests_[client] : all_; }

  bool by_group_;
  const Dataset& all_;
  std::vector<Dataset> tests_;      // per client
  std::vector<std::string> names_;  // per client; empty where clients are not persons
  std::vector<size_t> samples_;
};

}  // namespace bitfed
