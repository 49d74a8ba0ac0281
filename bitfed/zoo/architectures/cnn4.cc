// CNN4: four times [convolution 3 x 3, batch norm, activation, max pool 2 x 2], each twice as wide as the one
// before, then a dense layer without bias. Binary: all weights of convolutions are signs; all convolutions
// but the first take the signs of their inputs; hardtanh instead of ReLU.

#include "bitfed/zoo/architectures/architectures.h"

namespace bitfed {

Architecture describe_cnn4(const NetworkSpec& spec) {
  ArchitectureBuilder builder({spec.height, spec.image_width, spec.channels}, spec.binary, spec.static_signs);
  builder.at(spec.name);
  for (uint32_t block = 0; block < 4; ++block) {
    const std::string name = "blocks." + std::to_string(block);
    builder.convolution({.name = name + ".convolution",
                         .signs_name = name + ".signs",
                         .channels = spec.width << block,
                         .sign_weights = spec.binary,
                         .sign_inputs = spec.binary && block > 0});
    builder.norm(name + ".norm");
    builder.activation(spec.binary ? Activation::kHardtanh : Activation::kRelu);
    builder.max_pool(2);
  }
  builder.dense("dense", spec.classes);
  return builder.finish(spec.classes);
}

}  // namespace bitfed
