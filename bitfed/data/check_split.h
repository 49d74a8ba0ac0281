#pragma once

#include "bitfed/data/dataset.h"

namespace bitfed {

// Checks what loaders guarantee, for arrays that come from elsewhere: either images or a table, as many
// values, labels and groups as samples, labels and groups within their names, names that are distinct and on
// one line, and training and test samples of the same shape and classes. Anything else is an input_error.
void check_split(const DataSplit& split);

}  // namespace bitfed
