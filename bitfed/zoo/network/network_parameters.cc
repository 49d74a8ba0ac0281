#include "bitfed/zoo/network/network_parameters.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

// Two values at a time: adding one to the exponent carries into the sign's place if all its bits are set.
bool all_finite(std::span<const float> values) {
  constexpr uint64_t kExponents = 0x7f8000007f800000, kOnes = 0x0080000000800000,
                     kCarries = 0x8000000080000000;
  uint64_t carries = 0;
  size_t i = 0;
  for (; i + 2 <= values.size(); i += 2) {
    uint64_t pair = 0;
    std::memcpy(&pair, &values[i], sizeof pair);
    carries |= (pair & kExponents) + kOnes;
  }
  return (carries & kCarries) == 0 && (i == values.size() || std::isfinite(values[i]));
}

}  // namespace

void check_values(const std::string& name, std::span<const float> values, std::string_view source) {
  const bool variance = name.ends_with(".variance");
  if (all_finite(values) &&
      (!variance || std::ranges::all_of(values, [](float value) { return value >= 0; })))
    return;
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

std::span<const float> view_parameter(const ParameterShape& shape, const State& state) {
  return state.view<float>(shape.name, {shape.rows, shape.columns});
}

std::vector<float> read_parameter(const ParameterShape& shape, const State& state) {
  const std::span<const float> values = view_parameter(shape, state);
  check_values(shape.name, values, state.source());
  return {values.begin(), values.end()};
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
