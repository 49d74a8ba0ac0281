#pragma once

#include "bitfed/edge/c/c_body.h"

namespace bitfed {

// Whether a network is of four blocks of a 3 x 3 convolution, batch norm, activation and 2 x 2 max pool, and
// a dense layer without bias.
bool is_pooled_blocks(const Architecture& architecture);

CBody pooled_blocks_body(const NetworkModel& model);

}  // namespace bitfed
