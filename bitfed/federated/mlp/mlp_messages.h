#pragma once

#include "bitfed/model/state.h"
#include "bitfed/nn/mlp/mlp.h"
#include "bitfed/zoo/mlp_model.h"

namespace bitfed {

// The parameters of a perceptron in messages, in few tensors: on a slow radio every tensor name costs
// airtime.

enum class MlpPrecision {
  kFloats,  // everything as 32-bit floats
  kSigns,   // one bit per weight, batch norm in 16 bits (bfloat16)
};

void add_parameters(const MlpParameters& parameters, MlpPrecision precision, State* message);

// Reads either precision. An input_error for wrong shapes, values that are not finite or beyond the range of
// ExactMean, and negative variances.
MlpParameters read_parameters(const State& message, const MlpShape& shape);

void add_scaling(const ColumnScaling& scaling, State* message);
ColumnScaling read_scaling(const State& message, size_t columns);

}  // namespace bitfed
