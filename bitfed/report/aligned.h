#pragma once

#include <string>
#include <vector>

namespace bitfed {

// Rows of texts as lines with aligned columns, for a terminal: the first to the left, the numbers to the
// right. All rows are as long as the first.
std::string aligned(const std::vector<std::vector<std::string>>& rows);

}  // namespace bitfed
