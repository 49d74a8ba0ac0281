#pragma once

#include <memory>
#include <optional>

#include "bitfed/federated/method.h"
#include "bitfed/federated/privacy/differential_privacy.h"
#include "bitfed/federated/privacy/privacy_recipe.h"

namespace bitfed {

// The noise of a server.
struct ServerNoise {
  DifferentialPrivacy differential;
  uint32_t expected_clients = 1;  // of a round
  uint64_t seed = 0;              // where the noise comes from in a simulation;
  bool served = false;            // else from the system
};

// A server half that adds the uploads of summed clients, and hands the method their mean, with noise where
// the recipe asks for it. `privacy` must have a grid, and the method must take means.
std::unique_ptr<ServerHalf> make_summed_server(const PrivacyRecipe& privacy,
                                               const std::optional<ServerNoise>& noise,
                                               std::unique_ptr<ServerHalf> method);

}  // namespace bitfed
