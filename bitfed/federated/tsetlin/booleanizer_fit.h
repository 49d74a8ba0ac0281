#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "bitfed/federated/tsetlin/tsetlin_client.h"

namespace bitfed {

// Round 0, for booleanizers that must be fitted to distributed data: clients send the quantiles of their
// columns, and the server takes their sample-weighted mean. Rows are never sent.
class BooleanizerFit {
 public:
  explicit BooleanizerFit(const TsetlinRecipe& recipe);

  bool needed() const { return needed_; }
  State broadcast() const;
  void accept(uint32_t client, const State& message);
  // Sets the cuts of the recipe's booleanizers.
  void finish(TsetlinRecipe* recipe);

 private:
  struct Quantiles {
    uint32_t samples;
    std::vector<float> values;  // bins - 1 per column
  };

  bool needed_ = false;
  uint64_t bins_ = 0;
  uint64_t columns_ = 0;
  std::map<uint32_t, Quantiles> received_;  // by client: sums are in this order, not in the order of arrival
};

// At the client: whether this broadcast asks for quantiles, and the reply.
bool asks_for_quantiles(const State& broadcast);
State quantile_message(const State& broadcast, const Dataset& samples);

// Every broadcast after round 0 contains the fitted booleanizers.
void add_booleanizers(const TsetlinRecipe& recipe, State* broadcast);
void take_booleanizers(const State& broadcast, TsetlinRecipe* recipe);

}  // namespace bitfed
