// ResNet10 and ResNet18 for small images: a 3 x 3 stem; four stages of basic blocks (one or two per stage),
// each twice as wide and, from the second on, half as high and wide as the one before; the mean of each
// channel, batch norm, a dense layer with bias. Binary: the stem is real, all convolutions of the blocks
// multiply signs by signs.

#include "bitfed/zoo/architectures/architectures.h"

namespace bitfed {
namespace {

constexpr uint32_t kStages = 4;

Architecture describe_resnet(const NetworkSpec& spec, uint32_t blocks_per_stage) {
  const Activation activation = spec.binary ? Activation::kHardtanh : Activation::kRelu;
  ArchitectureBuilder builder({spec.height, spec.image_width, spec.channels}, spec.binary, spec.static_signs);
  builder.at(spec.name);
  builder.convolution({.name = "stem", .signs_name = "", .channels = spec.width});
  builder.norm("stem.norm");
  builder.activation(activation);
  for (uint32_t i = 0; i < kStages * blocks_per_stage; ++i) {
    const uint32_t stage = i / blocks_per_stage;
    const uint32_t stride = stage > 0 && i % blocks_per_stage == 0 ? 2 : 1;
    builder.basic_block({.name = "blocks." + std::to_string(i),
                         .channels = spec.width << stage,
                         .stride = stride,
                         .activation = activation,
                         .shortcuts = spec.shortcuts});
  }
  builder.average_pool();
  builder.norm("norm");
  builder.dense("dense", spec.classes);
  builder.bias("dense");
  return builder.finish(spec.classes);
}

}  // namespace

Architecture describe_resnet10(const NetworkSpec& spec) {
  return describe_resnet(spec, 1);
}

Architecture describe_resnet18(const NetworkSpec& spec) {
  return describe_resnet(spec, 2);
}

}  // namespace bitfed
