#pragma once

#include <memory>

#include "bitfed/federated/method.h"
#include "bitfed/federated/privacy/privacy_recipe.h"

namespace bitfed {

// A client half whose uploads are the method's updates on the recipe's grid. `privacy` must have one.
std::unique_ptr<ClientHalf> make_summed_client(const PrivacyRecipe& privacy,
                                               std::unique_ptr<ClientHalf> method);

}  // namespace bitfed
