#pragma once

#include <cstdint>
#include <vector>

#include "bitfed/base/thread_pool.h"
#include "bitfed/data/partition/partition.h"
#include "bitfed/model/model.h"

namespace bitfed {

// An empirical attack on the privacy of clients: from released models, guess whose data they were trained on.

// The clients that repetition `repeat` does without: half of them (rounded down), ascending.
std::vector<uint32_t> withheld_clients(uint64_t seed, uint32_t repeat, uint32_t clients);

// How well the model fits each client's samples: minus the mean cross-entropy. Scores are divided by their
// standard deviation where that is above 1, so that votes of a Tsetlin machine count like logits.
std::vector<double> fit_of_clients(const Model& model, const Dataset& samples, const Partition& partition,
                                   ThreadPool& pool);

struct AuditedModel {
  std::vector<bool> is_member;  // of each client
  std::vector<double> fit;
};

struct AttackResult {
  uint64_t guesses = 0;
  uint64_t right = 0;
  double advantage = 0;      // 2 * right / guesses - 1
  double low = 0, high = 0;  // its 95 % interval (Wilson)
};

// Guesses for each model as many clients as it has members: those that fit it best, compared with how they
// fit the other models. At least one model, all of the same clients.
AttackResult attack_membership(const std::vector<AuditedModel>& models);

// The largest advantage that (epsilon, delta)-differential privacy permits.
double advantage_bound(double epsilon, double delta);

}  // namespace bitfed
