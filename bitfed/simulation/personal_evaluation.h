#pragma once

#include <vector>

#include "bitfed/data/partition/partition.h"
#include "bitfed/run/events.h"
#include "bitfed/federated/method.h"
#include "bitfed/simulation/client_states.h"

namespace bitfed {

// Judges the models that clients keep for themselves, each on test samples of its own client: those of the
// same person where the data knows persons and they are the clients, else all.
class PersonalEvaluation {
 public:
  PersonalEvaluation(const Dataset& train, const Partition& partition, bool by_group, const Dataset& test);

  // The mean of the accuracies of the personal models that there are; null: none.
  Event mean_accuracy(const ClientHalf& client, const ClientStates& states, ThreadPool& pool) const;

  // For every client: its name, samples, test samples, and on these the accuracy of the global model and of
  // its own. Empty where the method has no personal models.
  Event table(const Model& global, const ClientHalf& client, const ClientStates& states,
              ThreadPool& pool) const;

 private:
  const Dataset& test_of(uint32_t client) const { return by_group_ ? tests_[client] : all_; }

  bool by_group_;
  const Dataset& all_;
  std::vector<Dataset> tests_;      // a client
  std::vector<std::string> names_;  // a client's; empty where clients are no persons
  std::vector<size_t> samples_;
};

}  // namespace bitfed
