// CNN4 as ONNX. Binary: of a pool's four sums the largest is taken before batch norm, whose factor is made
// positive by turning filters about; that also keeps runtimes from folding the norm into the filters, whose
// sums would then no longer be whole numbers.

#include <fmt/format.h>

#include "bitfed/edge/onnx/onnx_body.h"
#include "bitfed/edge/onnx/onnx_layers.h"

namespace bitfed {
namespace {

struct Block {
  OnnxFilters filters;
  FoldedNorm norm;
};

Block read_block(const OnnxLayers& layers, const NetworkSpec& spec, size_t number) {
  const size_t in = number == 0 ? spec.channels : size_t{spec.width} << (number - 1);
  const size_t out = size_t{spec.width} << number;
  const std::string name = fmt::format("blocks.{}.", number);
  return {layers.filters(name + "convolution", {}, in, out), layers.norm(name + "norm", out)};
}

void make_factors_positive(Block* block) {
  std::vector<float>& weights = block->filters.weights;
  const size_t out = block->filters.out;
  for (size_t filter = 0; filter < out; ++filter) {
    float& factor = block->norm.factor[filter];
    if (!(factor < 0)) continue;
    factor = -factor;
    for (size_t i = filter; i < weights.size(); i += out) weights[i] = -weights[i];
  }
}

}  // namespace

std::string add_cnn4(const NetworkModel& model, const std::string& input, OnnxGraph* graph) {
  const NetworkSpec& spec = model.spec();
  OnnxLayers layers(model, graph);
  const auto pool = [&](const std::string& x) {
    return graph->node(
        "MaxPool", {x},
        {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
  };
  std::string x = layers.inputs(input);
  for (size_t i = 0; i < kCnn4Blocks; ++i) {
    Block block = read_block(layers, spec, i);
    if (!spec.binary) {
      x = pool(layers.activated(layers.normed(layers.convolution(x, block.filters), block.norm)));
      continue;
    }
    make_factors_positive(&block);
    if (i == 0) {
      x = layers.ordered_convolution(x, block.filters);
    } else {
      const size_t pixels = size_t{spec.height >> i} * (spec.image_width >> i);
      x = layers.convolution(layers.signs(x, pixels, block.filters.in, fmt::format("blocks.{}", i)),
                             block.filters);
    }
    x = layers.activated(layers.normed(pool(x), block.norm));
  }
  return layers.dense(x, Bias::kNone);
}

}  // namespace bitfed
