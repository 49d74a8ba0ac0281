#include "bitfed/edge/onnx/export_onnx.h"

#include <map>
#include <nlohmann/json.hpp>

#include "bitfed/base/error.h"
#include "bitfed/edge/onnx/onnx_body.h"
#include "bitfed/zoo/model_file.h"

namespace bitfed {
namespace {

std::string add_model(const Model& model, const std::string& input, OnnxGraph* graph) {
  if (const auto* tsetlin = dynamic_cast<const TsetlinModel*>(&model))
    return add_onnx(*tsetlin, input, graph);
  if (const auto* mlp = dynamic_cast<const MlpModel*>(&model)) return add_onnx(*mlp, input, graph);
  if (const auto* network = dynamic_cast<const NetworkModel*>(&model))
    return add_onnx(*network, input, graph);
  throw input_error("--format onnx: no way to write this kind of model as ONNX");
}

}  // namespace

Bytes export_onnx(const Model& model, const std::string& name, const std::vector<std::string>& class_names,
                  const std::vector<std::string>& columns) {
  OnnxGraph graph(name);
  const SampleShape takes = input_of_model(model);
  const auto length = [](size_t value) { return static_cast<int64_t>(value); };
  const std::string input =
      takes.is_table() ? graph.input("values", OnnxType::kFloat, {-1, length(takes.columns)})
                       : graph.input("pixels", OnnxType::kUint8,
                                     {-1, length(takes.height), length(takes.width), length(takes.channels)});
  const std::string scores = add_model(model, input, &graph);
  const std::string best = graph.node("ArgMax", {scores}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
  graph.output(best, "class", OnnxType::kInt64, {-1});
  graph.output(scores, "scores", OnnxType::kFloat, {-1, length(model.class_count())});
  std::map<std::string, std::string> notes = {{"class_names", nlohmann::json(class_names).dump()}};
  if (!columns.empty()) notes["columns"] = nlohmann::json(columns).dump();
  return graph.model(notes);
}

}  // namespace bitfed
