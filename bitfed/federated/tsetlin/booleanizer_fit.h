#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "bitfed/federated/arithmetic/client_mean.h"
#include "bitfed/federated/tsetlin/tsetlin_client.h"

namespace bitfed {

// Round 0, for booleanizers that must be fitted to distributed data: clients send the quantiles of their
// columns, and the server takes their sample-weighted mean, or their median where the recipe bounds its
// clients (max_samples, max_votes). Rows are never sent.
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

  std::vector<double> combined() const;

  bool needed_ = false;
  Combining combining_;
  uint64_t bins_ = 0;
  uint64_t columns_ = 0;
  std::map<uint32_t, Quantiles> received_;  // by client: sums are in this order, not in the order of arrival
};

// At the client: whether this broadcast asks for quantiles, and the reply. For every column it holds bins - 1
// values: with three samples per bin or more, one sample's value in each bin; with fewer, values between the
// means of groups of at least three samples (of all samples, where there are fewer than six).
bool asks_for_quantiles(const State& broadcast);
State quantile_message(const State& broadcast, const Dataset& samples);

// Every broadcast after round 0 contains the fitted booleanizers.
void add_booleanizers(const TsetlinRecipe& recipe, State* broadcast);
void take_booleanizers(const State& broadcast, TsetlinRecipe* recipe);

}  // namespace bitfed
