#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "bitfed/federated/tsetlin/tsetlin_client.h"

namespace bitfed {

// Round 0, for recipes whose booleanizers must be fitted to data that nobody sees whole: clients send
// the quantiles of their columns, the server averages them weighted by samples. Rows never travel.
class BooleanizerFit {
 public:
  explicit BooleanizerFit(const TsetlinRecipe& recipe);

  bool needed() const { return needed_; }
  State broadcast() const;
  void accept(uint32_t client, const State& message);
  // Puts the cuts into the recipe's booleanizers.
  void finish(TsetlinRecipe* recipe);

 private:
  struct Quantiles {
    uint32_t samples;
    std::vector<float> values;  // column by column, bins - 1 each
  };

  bool needed_ = false;
  uint64_t bins_ = 0;
  uint64_t columns_ = 0;
  std::map<uint32_t, Quantiles> received_;  // by client: sums are taken in this order, not of arrival
};

// The client's side: whether this broadcast asks for quantiles, and the answer.
bool asks_for_quantiles(const State& broadcast);
State quantile_message(const State& broadcast, const Dataset& samples);

// Fitted booleanizers travel in every broadcast after round 0.
void add_booleanizers(const TsetlinRecipe& recipe, State* broadcast);
void take_booleanizers(const State& broadcast, TsetlinRecipe* recipe);

}  // namespace bitfed
