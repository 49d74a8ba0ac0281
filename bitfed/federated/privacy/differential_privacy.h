#pragma once

#include <cstdint>
#include <optional>

#include "bitfed/base/config.h"
#include "bitfed/federated/privacy/accountant.h"

namespace bitfed {

// The recipe's [privacy] clip, noise_multiplier or epsilon, delta and max_epsilon: what a released model may
// tell about the participation of one client (its unit; databases differ by one client more or less).
struct DifferentialPrivacy {
  double clip = 1;          // the norm that a client's update has at most
  SampledGaussian release;  // of one round
  double delta = 1e-5;
  std::optional<double> max_epsilon = {};  // no round is run that would spend more; empty: no limit

  double epsilon_after(uint64_t rounds) const { return epsilon_of(release, rounds, delta); }
  // Whether a round after `rounds` private ones is within max_epsilon.
  bool allows_another(uint64_t rounds) const;
};

// How often a client takes part, and for how long: what a target epsilon means in noise.
struct Sampling {
  uint32_t clients = 1;
  uint32_t clients_per_round = 1;  // expected
  uint32_t rounds = 1;

  double probability() const { return static_cast<double>(clients_per_round) / clients; }
};

// Empty where the recipe has no clip. With `epsilon` the noise is the least for which all rounds spend that
// much, and max_epsilon is that epsilon unless it is given.
std::optional<DifferentialPrivacy> read_differential_privacy(const Config& recipe, const Sampling& sampling);

}  // namespace bitfed
