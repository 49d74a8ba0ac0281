#include "bitfed/federated/privacy/differential_privacy.h"

#include "bitfed/base/error.h"

namespace bitfed {

bool DifferentialPrivacy::allows_another(uint64_t rounds) const {
  return !max_epsilon || epsilon_after(rounds + 1) <= *max_epsilon;
}

std::optional<DifferentialPrivacy> read_differential_privacy(const Config& recipe, const Sampling& sampling) {
  const Config section = recipe.section("privacy");
  if (!section.has("clip")) {
    for (const char* key : {"noise_multiplier", "epsilon", "delta", "max_epsilon"}) {
      if (section.has(key)) {
        throw input_error("{}: found without privacy.clip, expected the norm that updates are clipped to",
                          section.where(key));
      }
    }
    return std::nullopt;
  }
  DifferentialPrivacy privacy;
  privacy.clip = section.number("clip", 1, 1e-6, 1e6);
  privacy.delta = section.number("delta", 1e-5, 1e-15, 0.5);
  privacy.release.sampling = sampling.probability();
  const bool is_target = section.has("epsilon");
  if (is_target == section.has("noise_multiplier")) {
    throw input_error("{}: found {} of noise_multiplier and epsilon beside it, expected one",
                      section.where("clip"), is_target ? "both" : "none");
  }
  if (is_target) {
    const double epsilon = section.number("epsilon", 1, 1e-3, 1e3);
    privacy.release.noise_multiplier =
        noise_for(epsilon, privacy.delta, privacy.release.sampling, sampling.rounds);
    privacy.max_epsilon = epsilon;
  } else {
    privacy.release.noise_multiplier = section.number("noise_multiplier", 1, 0.01, 1e4);
  }
  if (section.has("max_epsilon")) privacy.max_epsilon = section.number("max_epsilon", 1, 1e-3, 1e6);
  return privacy;
}

}  // namespace bitfed
