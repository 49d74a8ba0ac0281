// A perceptron as ONNX.

#include <fmt/format.h>

#include "bitfed/edge/onnx/onnx_body.h"
#include "bitfed/nn/products/sign_bits.h"

namespace bitfed {
namespace {

std::string scaled(const ColumnScaling& scaling, const std::string& input, OnnxGraph* graph) {
  const auto columns = static_cast<int64_t>(scaling.offset.size());
  std::string x = graph->node("Sub", {input, graph->constant({columns}, scaling.offset)});
  x = graph->node("Mul", {x, graph->constant({columns}, scaling.factor)});
  if (scaling.limit <= 0) return x;
  return graph->node("Clip", {x, graph->constant({}, std::vector{-scaling.limit}),
                              graph->constant({}, std::vector{scaling.limit})});
}

// The sums of real inputs with their signs, taken one after the other as they are when it is trained: running
// sums, of which the last counts.
std::string ordered_sums(const std::string& x, const std::string& signs, int64_t in, OnnxGraph* graph) {
  const std::string apart = graph->node("Unsqueeze", {x, graph->constant({1}, std::vector<int64_t>{2})});
  const std::string products = graph->node("Mul", {apart, signs});
  const std::string sums = graph->node("CumSum", {products, graph->constant({}, std::vector<int64_t>{1})});
  return graph->node("Squeeze",
                     {graph->slice(sums, 1, in - 1, in), graph->constant({1}, std::vector<int64_t>{1})});
}

std::string signs_of(const std::string& x, OnnxGraph* graph) {
  const std::string positive = graph->node("GreaterOrEqual", {x, graph->constant({}, std::vector{0.0f})});
  return graph->node(
      "Where", {positive, graph->constant({}, std::vector{1.0f}), graph->constant({}, std::vector{-1.0f})});
}

}  // namespace

std::string add_onnx(const MlpModel& model, const std::string& input, OnnxGraph* graph) {
  const State state = model.state();
  const MlpShape& shape = model.shape();
  std::string x = scaled(model.scaling(), input, graph);
  for (size_t i = 0; i < shape.layers(); ++i) {
    const std::string name = fmt::format("layers.{}.", i);
    const int64_t in = shape.widths[i];
    const int64_t out = shape.widths[i + 1];
    if (shape.binary) {
      const auto count = static_cast<size_t>(in * out);
      const auto bits = state.values<uint8_t>(name + "weights", {State::kAny});
      std::vector<int8_t> signs;
      for (const float sign : unpack_signs(bits, count, name)) signs.push_back(static_cast<int8_t>(sign));
      const std::string weights = graph->small_floats({in, out}, signs);
      x = i == 0 ? ordered_sums(x, weights, in, graph) : graph->node("MatMul", {x, weights});
    } else {
      const auto weights = state.values<float>(name + "weights", {State::kAny, State::kAny});
      x = graph->node("MatMul", {x, graph->constant({in, out}, weights)});
    }
    x = graph->node("Mul", {x, graph->constant({out}, state.values<float>(name + "factor", {State::kAny}))});
    x = graph->node("Add", {x, graph->constant({out}, state.values<float>(name + "shift", {State::kAny}))});
    if (i + 1 == shape.layers()) break;
    x = shape.binary ? signs_of(x, graph) : graph->node("Relu", {x});
  }
  return x;
}

}  // namespace bitfed
