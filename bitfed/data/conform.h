#pragma once

#include "bitfed/data/dataset.h"

namespace bitfed {

// Samples that somebody loaded alone, as those of `prototype` (a data set without samples): labels count in
// its classes, by name. An input_error where the shape, the columns or a class is not the prototype's.
Dataset conform(Dataset samples, const Dataset& prototype);

}  // namespace bitfed
