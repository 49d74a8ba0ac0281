#include "bitfed/federated/privacy/privacy_recipe.h"

#include <algorithm>

#include "bitfed/base/error.h"
#include "bitfed/federated/arithmetic/client_mean.h"
#include "bitfed/federated/privacy/differential_privacy.h"

namespace bitfed {
namespace {

void refuse_bounds(const Config& recipe, const Combining& combining) {
  const bool mean = combining.kind == Combining::Kind::kMean;
  if (mean && combining.norm_bound == 0) return;
  throw input_error(
      "{}: found together with [privacy], expected {}: the server sees the sum of the updates, not each",
      recipe.section("federation").where(mean ? "norm_bound" : "combine"), mean ? "none" : "'mean'");
}

}  // namespace

PrivacyRecipe read_privacy(const Config& recipe, uint32_t clients) {
  PrivacyRecipe privacy;
  // Read only where it is given: earlier runs were recorded without it.
  if (!recipe.has("privacy")) return privacy;
  const Config section = recipe.section("privacy");
  privacy.secure_aggregation = section.flag("secure_aggregation", false);
  const bool differential = has_differential_privacy(recipe);
  if (!section.has("update_grid") && !privacy.secure_aggregation && !differential) return privacy;
  if (privacy.secure_aggregation) {
    privacy.min_survivors = read_min_survivors(recipe, clients);
    privacy.phase_seconds = section.number("phase_seconds", privacy.phase_seconds, 0.1, 1e6);
  }
  UpdateGrid grid;
  // What is clipped has a range.
  if (differential) {
    grid.range = std::max(section.number("clip", 1, 1e-6, 1e6),
                          section.number("statistics_clip", section.number("clip", 1, 1e-6, 1e6), 1e-6, 1e6));
  }
  grid.bits = static_cast<uint32_t>(section.integer("update_grid", grid.bits, 0, 30));
  grid.range = section.number("update_range", grid.range, 1e-6, 1 << 20);
  grid.max_clients = static_cast<uint32_t>(
      section.integer("max_clients", clients > 0 ? clients : grid.max_clients, 1, UpdateGrid::kMaxClients));
  if (clients > grid.max_clients) {
    throw input_error("{}: found {}, expected at least the {} clients of a round",
                      section.where("max_clients"), grid.max_clients, clients);
  }
  const std::vector<std::string> weights = {"samples", "equal"};
  privacy.equal_weights = section.choice("weights", weights[differential ? 1 : 0], weights) == weights[1];
  if (differential && !privacy.equal_weights) {
    throw input_error(
        "{}: found 'samples' together with clip, expected 'equal': a client's weight is not bounded",
        section.where("weights"));
  }
  const Combining combining = read_combining(recipe);
  refuse_bounds(recipe, combining);
  grid.max_weight = privacy.equal_weights ? 1 : std::min(combining.max_samples, UpdateGrid::kMaxWeight);
  if (!grid.fits()) {
    throw input_error("{}: found {}, expected less: sums of {} clients within ±{} do not fit {} bits",
                      section.where("update_grid"), grid.bits, grid.max_clients, grid.range,
                      ModularVector::kMaxBits);
  }
  privacy.grid = grid;
  return privacy;
}

}  // namespace bitfed
