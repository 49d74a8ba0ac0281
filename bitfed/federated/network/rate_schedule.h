#pragma once

#include <cstdint>

#include "bitfed/base/config.h"

namespace bitfed {

// How the learning rate changes from round to round.
struct RateSchedule {
  enum class Kind {
    kHalve,     // halved at round halve_from, and again every halve_every rounds
    kCosine,    // half a cosine wave: from all of it in the first round to almost nothing in the last
    kStep,      // times step_factor every step_every rounds
    kConstant,  // unchanged
  };

  Kind kind = Kind::kHalve;
  uint32_t rounds = 1;  // of the run
  uint32_t halve_from = 1;
  uint32_t halve_every = 1;
  uint32_t step_every = 1;
  double step_factor = 0.1;

  // Of the initial rate, in a round from 1 to `rounds`; above 0.
  double factor(uint32_t round) const;
};

// Reads [client] schedule and the keys of the one it names; without it, the rate is halved.
RateSchedule read_rate_schedule(const Config& client, uint32_t rounds);

}  // namespace bitfed
