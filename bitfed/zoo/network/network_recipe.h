#pragma once

#include "bitfed/base/config.h"
#include "bitfed/data/dataset.h"
#include "bitfed/zoo/network/network_spec.h"

namespace bitfed {

// Reads [model] name, width or layers, deploy and shortcuts. An input_error for tables, for images too small
// for the network and for layers that do not fit together.
NetworkSpec read_network(const Config& recipe, const Dataset& prototype, bool binary);

}  // namespace bitfed
