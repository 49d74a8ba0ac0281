#pragma once

#include <cstdint>
#include <vector>

#include "bitfed/nn/packed/packed_network.h"
#include "bitfed/zoo/network_zoo.h"

namespace bitfed {

// The numbers of all tensors of a network as it is written down, in the order of network_tensors(): signs as
// bits, see pack_signs, the others as floats. Of each tensor one of the two is empty.
struct NetworkNumbers {
  std::vector<std::vector<float>> reals;
  std::vector<std::vector<uint8_t>> signs;
};

// A binary network for prediction on bits.
PackedNetwork::Numbers packed_numbers(const NetworkSpec& spec, const NetworkNumbers& numbers);

}  // namespace bitfed
