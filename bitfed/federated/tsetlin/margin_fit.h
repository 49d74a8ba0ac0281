#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "bitfed/federated/tsetlin/tsetlin_client.h"

namespace bitfed {

// The second exchange of a one-shot method, where the recipe has one: clients say how far the fused model's
// score of the right class lies above the best other score, its rival's, and the server adds one number to
// each class. Samples are never sent. docs/methods/fedtm-bank.md derives it.

// Of one client, [class that it holds][class]: the part of its samples of the first class that have the
// second as their rival, and the score of the first minus the score of the second over these.
struct Margins {
  ClassCounts counts;
  std::vector<float> shares;
  std::vector<float> means;
  std::vector<float> deviations;
};

class MarginFit {
 public:
  explicit MarginFit(size_t classes) : classes_(classes) {}

  void accept(uint32_t client, Margins margins) { received_[client] = std::move(margins); }

  // What to add to the score of each class; 0 for a class that no client holds.
  std::vector<double> offsets() const;

 private:
  size_t classes_;
  std::map<uint32_t, Margins> received_;  // by client: sums are in this order, not in the order of arrival
};

// At the client: whether this broadcast asks for margins of the model that it carries, and the reply.
bool asks_for_margins(const State& broadcast);
State margin_message(const State& broadcast, const Dataset& samples);

// The margins in a client's message, or an input_error.
Margins read_margins(const State& message, const TsetlinRecipe& recipe);

}  // namespace bitfed
