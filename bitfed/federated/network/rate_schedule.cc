#include "bitfed/federated/network/rate_schedule.h"

#include <algorithm>
#include <cmath>

#include "bitfed/nn/kernels/sine.h"

namespace bitfed {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kMin = 1e-25;  // as a float times any rate it is still above 0

// The FedBNN paper halves from round 200 on, every 50 of its 500 rounds; a shorter run does so by the same
// shares. Whole fifths of the rounds: at most one round early.
void read_halving(const Config& client, RateSchedule* schedule) {
  const uint32_t from = std::max<uint32_t>(2, schedule->rounds / 5 * 2);
  const uint32_t every = std::max<uint32_t>(1, schedule->rounds / 10);
  schedule->halve_from = static_cast<uint32_t>(client.integer("halve_from", from, 1));
  schedule->halve_every = static_cast<uint32_t>(client.integer("halve_every", every, 1));
}

// By default after each third of the rounds.
void read_steps(const Config& client, RateSchedule* schedule) {
  const uint32_t every = std::max<uint32_t>(1, schedule->rounds / 3);
  schedule->step_every = static_cast<uint32_t>(client.integer("step_every", every, 1));
  schedule->step_factor = client.number("step_factor", 0.1, 1e-3, 1);
}

}  // namespace

double RateSchedule::factor(uint32_t round) const {
  switch (kind) {
    case Kind::kHalve:
      return round < halve_from ? 1 : 1 / std::exp2(1 + (round - halve_from) / halve_every);
    case Kind::kCosine: {
      // (1 + cos x) / 2 = cos(x / 2)^2, which stays above 0. The project's own cosine: every server announces
      // the same rate.
      const double half = cosine(static_cast<float>(kPi / 2 * (round - 1) / rounds));
      return half * half;
    }
    case Kind::kStep: {
      double factor = 1;
      for (uint32_t i = 0; i < (round - 1) / step_every && factor > kMin; ++i) factor *= step_factor;
      return factor;
    }
    case Kind::kConstant:
      break;
  }
  return 1;
}

RateSchedule read_rate_schedule(const Config& client, uint32_t rounds) {
  RateSchedule schedule;
  schedule.rounds = rounds;
  const std::vector<std::string> names = {"halve", "cosine", "step", "constant"};  // in the order of Kind
  if (client.has("schedule")) {
    const std::string name = client.choice("schedule", names[0], names);
    schedule.kind =
        static_cast<RateSchedule::Kind>(std::find(names.begin(), names.end(), name) - names.begin());
  }
  if (schedule.kind == RateSchedule::Kind::kHalve) read_halving(client, &schedule);
  if (schedule.kind == RateSchedule::Kind::kStep) read_steps(client, &schedule);
  return schedule;
}

}  // namespace bitfed
