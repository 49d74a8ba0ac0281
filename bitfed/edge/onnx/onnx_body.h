#pragma once

#include <string>

#include "bitfed/edge/onnx/onnx_graph.h"
#include "bitfed/tsetlin/tsetlin_model.h"
#include "bitfed/zoo/mlp_model.h"
#include "bitfed/zoo/network/network_model.h"

namespace bitfed {

// Add the nodes of a model behind its input; the value with the scores. Where a later step takes signs, sums
// are made of nodes whose every rounding is that of the training code, so that no sign can flip.
std::string add_onnx(const TsetlinModel& model, const std::string& input, OnnxGraph* graph);
std::string add_onnx(const MlpModel& model, const std::string& input, OnnxGraph* graph);
std::string add_onnx(const NetworkModel& model, const std::string& input, OnnxGraph* graph);

}  // namespace bitfed
