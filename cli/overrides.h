#pragma once

#include <string>
#include <vector>

#include "bitfed/base/config.h"

namespace bitfed::cli {

// Applies the values of --set key=value options.
void apply_overrides(const std::vector<std::string>& overrides, Config* recipe);

}  // namespace bitfed::cli
