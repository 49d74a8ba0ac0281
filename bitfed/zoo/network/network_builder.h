#pragma once

#include <span>

#include "bitfed/nn/layers/network.h"
#include "bitfed/nn/rotated/rotated_weights.h"
#include "bitfed/zoo/architectures/architectures.h"

namespace bitfed {

// The network as it is deployed, its parameters freshly initialised; a real one can be trained as it is.
Network make_network(const NetworkSpec& spec, size_t batch, const RandomStream& random);

// A binary network in training, with rotated weights. Its deployed() values are the parameters of the other.
Network make_rotated_network(const NetworkSpec& spec, const RotatedOptions& options, size_t batch,
                             const RandomStream& random);

// Puts an image at `index` of the batch.
void load_image(const NetworkSpec& spec, std::span<const uint8_t> pixels, size_t index, Network* network);

// For many images: the network's input for every value of a pixel, [channel][256], as load_pixels takes it.
std::vector<float> input_table(const NetworkSpec& spec);

}  // namespace bitfed
