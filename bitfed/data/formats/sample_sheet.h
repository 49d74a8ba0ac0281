#pragma once

#include <cstddef>

#include "bitfed/data/dataset.h"
#include "bitfed/data/formats/image.h"

namespace bitfed {

// The first samples of every class in one picture: a row for each of the first `classes` classes, `columns`
// samples in each, a line of white between them. The images must be at most 64 x 64, or every n-th pixel of
// them is shown.
Image sample_sheet(const Dataset& images, size_t classes = 20, size_t columns = 10);

}  // namespace bitfed
