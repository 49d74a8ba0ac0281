#pragma once

#include "bitfed/model/state.h"
#include "bitfed/nn/mlp/mlp.h"
#include "bitfed/zoo/mlp_model.h"

namespace bitfed {

// A perceptron's parameters on their way between client and server, in few tensors: on a slow radio every
// name costs airtime.

enum class MlpPrecision {
  kFloats,  // everything as 32-bit floats
  kSigns,   // one bit a weight, batch norm in 16 bits (bfloat16)
};

void add_parameters(const MlpParameters& parameters, MlpPrecision precision, State* message);

// Of either precision. An input_error for wrong shapes, numbers that are not finite or beyond the range of
// ExactMean, negative variances.
MlpParameters read_parameters(const State& message, const MlpShape& shape);

void add_scaling(const ColumnScaling& scaling, State* message);
ColumnScaling read_scaling(const State& message, size_t columns);

}  // namespace bitfed
