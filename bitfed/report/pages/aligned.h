#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace bitfed {

using TextRows = std::vector<std::vector<std::string>>;  // all as long as the first

// A title over so many columns.
struct ColumnGroup {
  std::string title;
  size_t columns = 1;
};

// Rows of texts as lines with aligned columns, for a terminal: the first to the left, the numbers to the
// right. With groups, a line with their titles comes first.
std::string aligned(const TextRows& rows, const std::vector<ColumnGroup>& groups = {});

}  // namespace bitfed
