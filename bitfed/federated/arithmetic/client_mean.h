#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bitfed/base/config.h"
#include "bitfed/federated/arithmetic/exact_mean.h"

namespace bitfed {

// How a server combines its clients' numbers, and how far it trusts any one of them.
struct Combining {
  enum class Kind {
    kMean,         // by samples
    kMedian,       // of each number by itself, every client counting the same
    kTrimmedMean,  // likewise, without the largest and the smallest
  };
  Kind kind = Kind::kMean;
  double trim = 0.1;                   // of the clients, left out at each end
  double norm_bound = 0;               // a client's change is shortened to this length; 0: any length
  uint32_t most_samples = UINT32_MAX;  // that a client counts with, whatever it claims
};

// Reads the recipe's federation.combine, trim, norm_bound and most_samples.
Combining read_combining(const Config& recipe);

using Numbers = std::vector<std::vector<float>>;  // a model's, tensor by tensor

// What becomes of the clients' numbers in one round, whatever the order they come in. The mean takes memory
// for one model; median and trimmed mean need all clients' at once.
class ClientMean {
 public:
  // `learned`: of each tensor, whether its change counts for the length that the norm bound bounds. Gathered
  // statistics do not, since variances would drown the weights; they are shortened with the rest.
  ClientMean(const Combining& combining, std::vector<bool> learned)
      : combining_(combining), learned_(std::move(learned)) {}

  // `start`: what the client began the round with. `numbers` must have its shape and be such as
  // ExactMean::fits; `samples` is at least 1. An input_error leaves everything as it was.
  void add(uint32_t client, Numbers numbers, uint32_t samples, const Numbers& start);

  size_t clients() const { return clients_; }
  uint64_t samples() const { return samples_; }
  // Of one client at least; begins anew.
  Numbers take();
  // Where there is a norm bound: how long the changes were that were taken last, to choose one by.
  std::vector<std::string> notes() const;

 private:
  void shorten(const Numbers& start, Numbers* numbers);
  Numbers middle() const;

  Combining combining_;
  std::vector<bool> learned_;
  std::vector<ExactMean> means_;
  std::map<uint32_t, Numbers> all_;
  std::vector<double> lengths_;       // of the changes, as they came
  std::vector<double> last_lengths_;  // those of the last take(), sorted
  size_t clients_ = 0;
  uint64_t samples_ = 0;
};

}  // namespace bitfed
