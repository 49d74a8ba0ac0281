#pragma once

#include <memory>
#include <optional>

#include "bitfed/federated/method.h"
#include "bitfed/federated/privacy/differential_privacy.h"
#include "bitfed/federated/privacy/privacy_recipe.h"

namespace bitfed {

// A client half whose uploads are the method's updates on the recipe's grid, clipped where the recipe asks
// for differential privacy, with their share of the noise where clients add it. `privacy` must have a grid.
// No `noise`: from the client's random stream, and so from the seed, which is public.
std::unique_ptr<ClientHalf> make_summed_client(const PrivacyRecipe& privacy,
                                               const std::optional<DifferentialPrivacy>& differential,
                                               std::unique_ptr<ClientHalf> method, NoiseSource noise = {});

}  // namespace bitfed
