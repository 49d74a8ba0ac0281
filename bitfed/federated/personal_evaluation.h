#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "bitfed/data/partition/partition.h"
#include "bitfed/federated/client_states.h"
#include "bitfed/federated/method.h"
#include "bitfed/run/summary.h"

namespace bitfed {

// Evaluates the models that clients keep for themselves, each on its own client's test samples: those of the
// same person where the clients are persons, else all. A personal model is evaluated when its client's state
// has changed, and not again: a round costs what its clients cost, however many others there are. What is
// given is referred to, not copied.
class PersonalEvaluation {
 public:
  PersonalEvaluation(const Dataset& train, const Partition& partition, bool by_group, const Dataset& test)
      : train_(train), partition_(partition), by_group_(by_group), test_(test) {}

  // Of the state that a client keeps: the accuracy of its model. Threads may call it at the same time.
  ClientStates::Judged judge(uint32_t client, const Bytes& kept, const ClientHalf& half);

  // The mean accuracy of the personal models that there are; empty: none.
  std::optional<double> mean_accuracy(const ClientHalf& client, const ClientStates& states, ThreadPool& pool);

  // A row per client. Empty where the method has no personal models.
  std::vector<ClientAccuracy> table(const Model& global, const ClientHalf& client, const ClientStates& states,
                                    ThreadPool& pool);

 private:
  struct Judged {
    uint32_t version = 0;  // of the client's state
    std::optional<double> accuracy = {};
  };

  uint32_t group_of(uint32_t client) const { return train_.groups[partition_[client].front()]; }
  std::span<const uint32_t> rows_of(uint32_t client) const;
  size_t test_samples(uint32_t client) const { return by_group_ ? rows_of(client).size() : test_.size(); }
  void sort_rows();
  void refresh(const ClientHalf& client, const ClientStates& states, ThreadPool& pool);
  std::vector<size_t> right_by_group(const Model& global, ThreadPool& pool) const;

  const Dataset& train_;
  const Partition& partition_;
  bool by_group_;
  const Dataset& test_;
  std::vector<uint32_t> rows_;  // of the test data, group by group; filled when the first model appears
  std::vector<size_t> ends_;    // per group, where its rows end in rows_
  std::vector<Judged> judged_;  // per client
  std::once_flag sorted_;
  bool any_ = false;   // a client has a model of its own
  ThreadPool one_{1};  // for predictions within a task
};

}  // namespace bitfed
