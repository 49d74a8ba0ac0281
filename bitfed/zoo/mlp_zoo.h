#pragma once

#include "bitfed/base/config.h"
#include "bitfed/data/dataset.h"
#include "bitfed/nn/mlp/mlp.h"

namespace bitfed {

// Reads [model] name = "mlp": hidden layers' widths and precision ("binary" or "full", by default as `binary`
// says). Inputs and classes are the data's. An input_error for other models, and for data that is no table.
MlpShape read_mlp(const Config& recipe, const Dataset& prototype, bool binary = true);

}  // namespace bitfed
