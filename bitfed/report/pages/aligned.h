#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace bitfed {

using TextRows = std::vector<std::vector<std::string>>;  // all as long as the first

// A title over several columns.
struct ColumnGroup {
  std::string title;
  size_t columns = 1;
};

// Rows of strings as lines with aligned columns, for a terminal: the first column left-aligned, the others
// right-aligned. With groups, a line with their titles comes first.
std::string aligned(const TextRows& rows, const std::vector<ColumnGroup>& groups = {});

}  // namespace bitfed
