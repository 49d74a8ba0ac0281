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

// The part of the clients' own training samples that the model takes for another class, if margins over each
// rival are normally distributed, and the number of clients that this is true of for more than half of their
// samples (clients with few samples are left out).
struct Disagreement {
  double wrong = 0;
  size_t clients = 0;
};

class MarginFit {
 public:
  explicit MarginFit(size_t classes) : classes_(classes) {}

  void accept(uint32_t client, Margins margins) { received_[client] = std::move(margins); }

  size_t clients() const { return received_.size(); }

  // What to add to the score of each class; 0 for a class that no client holds.
  std::vector<double> offsets() const;

  // What the model with these offsets gets wrong at the clients.
  Disagreement disagreement(const std::vector<double>& offsets) const;

 private:
  std::vector<double> counted_parts()
      const;  // parts_that_count of the clients, in the order of their numbers

  size_t classes_;
  std::map<uint32_t, Margins> received_;  // by client: sums are in this order, not in the order of arrival
};

// At the client: whether this broadcast asks for margins of the model that it carries, and the reply.
bool asks_for_margins(const State& broadcast);
State margin_message(const State& broadcast, const Dataset& samples);

// The bytes of the reply of a client with these samples.
uint64_t margin_message_bytes(const ClassCounts& counts, size_t classes);

// The margins in a client's message, or an input_error.
Margins read_margins(const State& message, const TsetlinRecipe& recipe);

}  // namespace bitfed
