#pragma once

#include <cstddef>

#include "bitfed/model/state.h"

namespace bitfed {

// For messages of clients, after every tensor that belongs in one was read: there are no others. Names are
// unique, so that their number is enough.
void expect_tensors(const State& message, size_t count);

}  // namespace bitfed
