#include "bitfed/zoo/network/network_parameters.h"

#include <limits>

#include "bitfed/base/error.h"

namespace bitfed {

void check_values(const std::string& name, const std::vector<float>& values, std::string_view source) {
  const bool variance = name.ends_with(".variance");
  const float smallest = variance ? 0 : std::numeric_limits<float>::lowest();
  // False for NaN, and without a way out, so that it takes vectors.
  bool fine = true;
  for (const float value : values) fine &= value >= smallest && value <= std::numeric_limits<float>::max();
  if (fine) return;
  throw input_error("{}: tensor '{}': expected finite numbers{}", source, name, variance ? " from 0 on" : "");
}

NetworkParameters parameters_of(Network& network) {
  NetworkParameters parameters;
  for (const Parameter* parameter : network.parameters()) parameters.push_back(parameter->to_vector());
  return parameters;
}

void assign_parameters(const NetworkParameters& parameters, Network* network) {
  const std::vector<Parameter*> own = network->parameters();
  for (size_t i = 0; i < own.size(); ++i) own[i]->assign(parameters[i]);
}

ParameterShapes shapes_of(Network& network) {
  ParameterShapes shapes;
  for (const Parameter* parameter : network.parameters())
    shapes.push_back({parameter->name, parameter->used_rows(), parameter->values.columns,
                      parameter->statistic, parameter->decays});
  return shapes;
}

void add_parameter(const ParameterShape& shape, const std::vector<float>& values, State* state) {
  state->add(shape.name, {shape.rows, shape.columns}, values);
}

std::vector<float> read_parameter(const ParameterShape& shape, const State& state) {
  std::vector<float> values = state.values<float>(shape.name, {shape.rows, shape.columns});
  check_values(shape.name, values, state.source());
  return values;
}

void add_parameters(const ParameterShapes& shapes, const NetworkParameters& parameters, State* state) {
  for (size_t i = 0; i < shapes.size(); ++i) add_parameter(shapes[i], parameters[i], state);
}

NetworkParameters read_parameters(const ParameterShapes& shapes, const State& state) {
  NetworkParameters parameters;
  for (const ParameterShape& shape : shapes) parameters.push_back(read_parameter(shape, state));
  return parameters;
}

}  // namespace bitfed
