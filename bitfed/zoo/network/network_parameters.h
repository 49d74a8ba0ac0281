#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bitfed/model/state.h"
#include "bitfed/nn/layers/network.h"

namespace bitfed {

// The values of a network's parameters, in their order; rows without padding.
using NetworkParameters = std::vector<std::vector<float>>;

NetworkParameters parameters_of(Network& network);
void assign_parameters(const NetworkParameters& parameters, Network* network);

struct ParameterShape {
  std::string name;
  uint64_t rows = 0;
  uint64_t columns = 0;
  bool statistic = false;  // accumulated in training, not learned
  bool decays = false;     // by weight decay

  uint64_t count() const { return rows * columns; }
};
using ParameterShapes = std::vector<ParameterShape>;

ParameterShapes shapes_of(Network& network);

// As tensors of the parameters' names and shapes, and back; whatever does not fit, or is not finite, is an
// input_error.
void add_parameter(const ParameterShape& shape, const std::vector<float>& values, State* state);
std::vector<float> read_parameter(const ParameterShape& shape, const State& state);
// Its values are not checked.
std::span<const float> view_parameter(const ParameterShape& shape, const State& state);
void add_parameters(const ParameterShapes& shapes, const NetworkParameters& parameters, State* state);
NetworkParameters read_parameters(const ParameterShapes& shapes, const State& state);

// An input_error unless all values are finite, and not negative where the tensor is a variance.
void check_values(const std::string& name, std::span<const float> values, std::string_view source);

}  // namespace bitfed
