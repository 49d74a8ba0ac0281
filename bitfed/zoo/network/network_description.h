#pragma once

#include <string>
#include <string_view>

#include "bitfed/model/state.h"
#include "bitfed/zoo/network/network_spec.h"

namespace bitfed {

// A model file's metadata "bitfed.network": which network it is, as JSON; and back, trusting nothing.
std::string describe_network(const NetworkSpec& spec);
NetworkSpec read_network_description(const State& state, std::string_view source);

}  // namespace bitfed
