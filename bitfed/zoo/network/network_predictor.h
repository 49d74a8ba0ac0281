#pragma once

#include <memory>

#include "bitfed/model/predictor.h"
#include "bitfed/nn/packed/packed_network.h"
#include "bitfed/zoo/network/network_model.h"

namespace bitfed {

// Of a network on bits, image by image.
std::unique_ptr<Predictor> make_packed_predictor(const NetworkSpec& spec,
                                                 std::shared_ptr<const PackedNetwork> network);

// Of any other: the layers that it was trained with.
std::unique_ptr<Predictor> make_layers_predictor(const NetworkSpec& spec,
                                                 const NetworkParameters& parameters);

}  // namespace bitfed
