// The perceptron of Fed-Bin-MLP as it is deployed: dense layers without bias, batch norm folded into a factor
// and a shift per unit behind each of them, the last one too. Binary: weights and the inputs of all layers
// but the first are signs; else ReLU.

#include "bitfed/zoo/architectures/mlp.h"

namespace bitfed {

Architecture describe_mlp(const MlpShape& shape) {
  Architecture mlp{{1, 1, shape.widths.front()}, shape.widths.back(), {}};
  LayerShape in = mlp.input;
  for (size_t i = 0; i < shape.layers(); ++i) {
    const std::string name = "layers." + std::to_string(i);
    const LayerShape out{1, 1, shape.widths[i + 1]};
    const bool takes_signs = shape.binary && i > 0;
    if (takes_signs)
      mlp.layers.push_back(
          {.kind = LayerKind::kSigns, .name = "", .in = in, .out = in, .mean = SignMean::kZero});
    mlp.layers.push_back({.kind = LayerKind::kDense,
                          .name = name,
                          .in = in,
                          .out = out,
                          .sign_weights = shape.binary,
                          .sign_inputs = takes_signs});
    mlp.layers.push_back({.kind = LayerKind::kNorm, .name = name, .in = out, .out = out, .folded = true});
    const bool last = i + 1 == shape.layers();
    if (!shape.binary && !last)
      mlp.layers.push_back({.kind = LayerKind::kActivation,
                            .name = "",
                            .in = out,
                            .out = out,
                            .activation = Activation::kRelu});
    in = out;
  }
  return mlp;
}

}  // namespace bitfed
