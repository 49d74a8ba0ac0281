#pragma once

#include <cstdint>
#include <optional>

#include "bitfed/base/config.h"
#include "bitfed/federated/privacy/accountant.h"

namespace bitfed {

// The recipe's [privacy] clip, noise_multiplier or epsilon, delta and max_epsilon: what a released model may
// tell about the participation of one client (its unit; databases differ by one client more or less).
struct DifferentialPrivacy {
  double clip = 1;             // the norm that a client's update of learned parameters has at most
  double statistics_clip = 1;  // and that of batch norm's statistics
  SampledGaussian release;     // of one round
  double delta = 1e-5;
  std::optional<double> max_epsilon = {};  // no round is run that would spend more; empty: no limit
};

// How often a client takes part, and for how long: what a target epsilon means in noise.
struct Sampling {
  uint32_t clients = 0;            // 0: not known
  uint32_t clients_per_round = 0;  // expected
  uint32_t rounds = 1;

  double probability() const { return static_cast<double>(clients_per_round) / clients; }
};

// Whether the recipe asks for differential privacy: whether it has a clip. An input_error where it has other
// keys of it without one.
bool has_differential_privacy(const Config& recipe);

// With `epsilon` the noise is the least for which all rounds spend that much, and max_epsilon is that epsilon
// unless it is given. A client, which knows no sampling, needs the multiplier: the recipe as resolved has it.
DifferentialPrivacy read_differential_privacy(const Config& recipe, const Sampling& sampling);

}  // namespace bitfed
