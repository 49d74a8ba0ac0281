#pragma once

#include <string_view>
#include <vector>

#include "bitfed/data/named_samples.h"

namespace bitfed {

// The JSON of LEAF's data sets (FEMNIST and others): {"users": [...], "user_data": {"f0042": {"x": [[...]],
// "y": [...]}}}. A user is a person. `x` has a row of numbers per sample, which are the columns of a table,
// or the pixels (0 to 1) of an image of the shape `image` = {height, width, channels} if given. Read value by
// value: a file of a gigabyte takes the memory of its samples. `name` is for error messages.
NamedSamples parse_leaf(std::string_view text, const std::vector<size_t>& image, const std::string& name);

}  // namespace bitfed
