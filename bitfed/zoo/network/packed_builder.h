#pragma once

#include <cstdint>
#include <vector>

#include "bitfed/nn/packed/packed_network.h"
#include "bitfed/zoo/network/architecture.h"

namespace bitfed {

// The values of all tensors of a network as a file holds them, in the order of network_tensors(): signs as
// bits, see pack_signs, the others as floats. Of each tensor one of the two is empty.
struct NetworkValues {
  std::vector<std::vector<float>> reals;
  std::vector<std::vector<uint8_t>> signs;
};

// A binary network for prediction on bits.
PackedNetwork make_packed_network(const NetworkSpec& spec, const Architecture& architecture,
                                  const NetworkValues& values);

}  // namespace bitfed
