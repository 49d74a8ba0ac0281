#pragma once

#include "bitfed/data/dataset.h"

namespace bitfed {

// Samples that a device loaded by itself, made compatible with `prototype` (a data set without samples):
// labels are mapped to the prototype's classes by name. An input_error where the shape or the columns differ,
// or a class is unknown to the prototype.
Dataset conform(Dataset samples, const Dataset& prototype);

}  // namespace bitfed
