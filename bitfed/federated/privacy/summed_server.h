#pragma once

#include <memory>

#include "bitfed/federated/method.h"
#include "bitfed/federated/privacy/privacy_recipe.h"

namespace bitfed {

// A server half that adds the uploads of summed clients, and hands the method their mean. `privacy` must have
// a grid, and the method must take means.
std::unique_ptr<ServerHalf> make_summed_server(const PrivacyRecipe& privacy,
                                               std::unique_ptr<ServerHalf> method);

}  // namespace bitfed
