#pragma once

#include "bitfed/tsetlin/tsetlin_model.h"

namespace bitfed {

// An input_error that names the format where it cannot carry the model.
void check_exportable(const TsetlinModel& model, const char* format);

}  // namespace bitfed
