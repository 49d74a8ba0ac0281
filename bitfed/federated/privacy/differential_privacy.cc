#include "bitfed/federated/privacy/differential_privacy.h"

#include <algorithm>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

constexpr double kMaxNoise = 1e4;

double read_noise(const Config& section, double delta, const Sampling& sampling, double probability) {
  const bool is_target = section.has("epsilon");
  if (!is_target && !section.has("noise_multiplier")) {
    throw input_error("{}: found neither noise_multiplier nor epsilon beside it, expected one",
                      section.where("clip"));
  }
  if (!is_target || sampling.clients == 0) return section.number("noise_multiplier", 1, 0.01, kMaxNoise);
  const double epsilon = section.number("epsilon", 1, 1e-3, 1e3);
  const double needed = noise_for(epsilon, delta, probability, sampling.rounds);
  const double noise = section.number("noise_multiplier", needed, 0.01, kMaxNoise);
  if (noise < needed - 1e-9) {
    throw input_error("{}: found {}, expected at least the {} that epsilon = {} needs, or none",
                      section.where("noise_multiplier"), noise, needed, epsilon);
  }
  return noise;
}

}  // namespace

bool has_differential_privacy(const Config& recipe) {
  if (!recipe.has("privacy")) return false;
  const Config section = recipe.section("privacy");
  if (section.has("clip")) return true;
  for (const char* key :
       {"noise_multiplier", "epsilon", "delta", "max_epsilon", "statistics_clip", "noise", "draw"}) {
    if (section.has(key)) {
      throw input_error("{}: found without privacy.clip, expected the norm that updates are clipped to",
                        section.where(key));
    }
  }
  return false;
}

bool clients_add_noise(const Config& recipe) {
  if (!has_differential_privacy(recipe)) return false;
  const Config section = recipe.section("privacy");
  const bool masked = section.flag("secure_aggregation", false);
  const std::vector<std::string> who = {"server", "clients"};
  const bool clients = section.choice("noise", who[masked ? 1 : 0], who) == who[1];
  if (masked && !clients) {
    throw input_error(
        "{}: found 'server' together with secure_aggregation, expected 'clients': the server would see the "
        "sum without noise",
        section.where("noise"));
  }
  return clients;
}

uint32_t read_min_survivors(const Config& recipe, uint32_t clients_per_round) {
  const uint32_t least = clients_add_noise(recipe) ? clients_per_round / 2 + 1 : 3;
  return static_cast<uint32_t>(
      recipe.section("privacy").integer("min_survivors", std::max(least, 2u), 2, 1 << 20));
}

DifferentialPrivacy read_differential_privacy(const Config& recipe, const Sampling& sampling) {
  const Config section = recipe.section("privacy");
  DifferentialPrivacy privacy;
  privacy.clip = section.number("clip", 1, 1e-6, 1e6);
  privacy.statistics_clip = section.number("statistics_clip", privacy.clip, 1e-6, 1e6);
  privacy.delta = section.number("delta", 1e-5, 1e-15, 0.5);
  if (clients_add_noise(recipe)) {
    privacy.noise_clients = read_min_survivors(recipe, sampling.clients_per_round);
  } else {
    if (sampling.clients > 0) privacy.release.sampling = sampling.probability();
    // Read only where it is given: earlier runs were recorded without it.
    if (section.has("draw")) privacy.draw = static_cast<uint32_t>(section.integer("draw", 0, 0, UINT32_MAX));
  }
  privacy.release.noise_multiplier = read_noise(section, privacy.delta, sampling, privacy.release.sampling);
  if (section.has("epsilon")) privacy.max_epsilon = section.number("epsilon", 1, 1e-3, 1e3);
  if (section.has("max_epsilon")) privacy.max_epsilon = section.number("max_epsilon", 1, 1e-3, 1e6);
  return privacy;
}

}  // namespace bitfed
