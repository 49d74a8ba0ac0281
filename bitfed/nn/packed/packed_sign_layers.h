#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "bitfed/nn/packed/packed_convolution.h"
#include "bitfed/nn/packed/packed_layer.h"

namespace bitfed {

// Layers of a packed network that multiply signs by signs. `product`: see packed_real_layers.h.

// A convolution of signs with its batch norm, clipped to ±1 where `clips`.
struct PackedSignConvolution {
  size_t product = 0;
  PackedConvolution convolution;
  bool clips = true;  // always where the convolution pools
};
std::unique_ptr<PackedLayer> make_packed(PackedSignConvolution convolution);

// path(x) + shortcut(x), clipped to ±1 where `clips`. Without a shortcut it is x itself.
struct PackedResidual {
  std::vector<PackedSignConvolution> path;
  std::optional<PackedSignConvolution> shortcut;
  bool clips = true;
};
std::unique_ptr<PackedLayer> make_packed(PackedResidual residual);

}  // namespace bitfed
