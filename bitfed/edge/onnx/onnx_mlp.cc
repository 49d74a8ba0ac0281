// A perceptron as ONNX.

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
  std::string x = scaled(model.scaling(), input, graph);
  for (const LayerRecord& record : describe_mlp(model.shape()).layers) {
    const std::string weights_name = record.name + ".weights";
    const int64_t in = record.in.channels;
    const int64_t out = record.out.channels;
    if (record.kind == LayerKind::kSigns) x = signs_of(x, graph);
    if (record.kind == LayerKind::kActivation) x = graph->node("Relu", {x});
    if (record.kind == LayerKind::kDense && record.sign_weights) {
      const auto bits = state.values<uint8_t>(weights_name, {State::kAny});
      std::vector<int8_t> signs;
      for (const float sign : unpack_signs(bits, static_cast<size_t>(in * out), weights_name))
        signs.push_back(static_cast<int8_t>(sign));
      const std::string weights = graph->small_floats({in, out}, signs);
      x = record.sign_inputs ? graph->node("MatMul", {x, weights}) : ordered_sums(x, weights, in, graph);
    } else if (record.kind == LayerKind::kDense) {
      const auto weights = state.values<float>(weights_name, {State::kAny, State::kAny});
      x = graph->node("MatMul", {x, graph->constant({in, out}, weights)});
    }
    if (record.kind == LayerKind::kNorm) {
      const auto values = [&](const char* what) {
        return graph->constant({out}, state.values<float>(record.name + what, {State::kAny}));
      };
      x = graph->node("Mul", {x, values(".factor")});
      x = graph->node("Add", {x, values(".shift")});
    }
  }
  return x;
}

}  // namespace bitfed
