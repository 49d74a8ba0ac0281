#pragma once

#include "bitfed/zoo/network_zoo.h"

namespace bitfed {

struct ResnetBlock {
  std::string name;  // as its tensors' names begin
  size_t in, out;    // channels
  size_t stride;

  bool has_shortcut() const { return stride != 1 || in != out; }
};

// ResNet10 and ResNet18 for small images: a 3 x 3 stem, four stages of basic blocks (one or two a stage),
// each twice as wide and, from the second on, half as high and wide as the one before, with a 1 x 1 shortcut
// where the shape changes; the mean of each channel, batch norm, a dense layer with bias. Binary: the stem is
// real, all convolutions of the blocks multiply signs by signs.
Network make_resnet(const NetworkSpec& spec, size_t batch, const RandomStream& random,
                    const Convolutions& convolutions);

std::vector<ResnetBlock> resnet_blocks(const NetworkSpec& spec);
std::vector<NetworkProduct> resnet_products(const NetworkSpec& spec);

}  // namespace bitfed
