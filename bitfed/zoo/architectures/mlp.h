#pragma once

#include "bitfed/nn/mlp/mlp.h"
#include "bitfed/zoo/network/architecture.h"

namespace bitfed {

Architecture describe_mlp(const MlpShape& shape);

}  // namespace bitfed
