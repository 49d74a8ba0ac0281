#pragma once

#include <string_view>

namespace bitfed {

// Whether two recipes as resolved (one key per line) say the same. A key that was renamed counts as its new
// name, so that a run begun under one name can be continued under the other.
bool same_recipe(std::string_view a, std::string_view b);

}  // namespace bitfed
