#pragma once

#include <cstdint>
#include <functional>
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
  // Each client adds a share of the noise, so large that the updates of this many have all of it; 0: the
  // server adds it. Whoever sees the sum then learns how many are in it, and the server who: the sampling of
  // the release is 1.
  uint32_t noise_clients = 0;
  // A simulation's noise and Poisson draws come from the seed and this number: repetitions of a recipe that
  // are to differ in them, and in nothing else, have another number each.
  uint32_t draw = 0;
};

// Where the noise of one update comes from: what it returns gives 64 random bits at each call.
using NoiseSource = std::function<std::function<uint64_t()>()>;

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

// Whether the clients add the noise, and not the server: by the recipe, or since updates are masked.
bool clients_add_noise(const Config& recipe);

// The recipe's min_survivors: the least number of clients whose sum is opened. Where clients add the noise,
// more than half of a round's unless it is given: of these a third may be lost, see least_in_sum().
uint32_t read_min_survivors(const Config& recipe, uint32_t clients_per_round);

// With `epsilon` the noise is the least for which all rounds spend that much, and max_epsilon is that epsilon
// unless it is given. A client, which knows no sampling, needs the multiplier: the recipe as resolved has it.
DifferentialPrivacy read_differential_privacy(const Config& recipe, const Sampling& sampling);

}  // namespace bitfed
