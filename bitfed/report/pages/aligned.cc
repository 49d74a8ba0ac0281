#include "bitfed/report/pages/aligned.h"

#include <algorithm>

#include "bitfed/report/markup.h"

namespace bitfed {
namespace {

std::string padded(const std::string& text, size_t width, bool right) {
  const std::string space(width - std::min(width, character_count(text)), ' ');
  return right ? space + text : text + space;
}

std::vector<size_t> widths_of(const TextRows& rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], character_count(row[i]));
  }
  return widths;
}

// The line of the groups' titles. Where a title needs more room than its columns, the last of them gets it.
std::string title_line(const std::vector<ColumnGroup>& groups, std::vector<size_t>* widths) {
  std::string line;
  size_t column = 0;
  for (const ColumnGroup& group : groups) {
    size_t span = 2 * (group.columns - 1);
    for (size_t i = 0; i < group.columns; ++i) span += (*widths)[column + i];
    const size_t needed = character_count(group.title);
    if (needed > span) (*widths)[column + group.columns - 1] += needed - span;
    line += (column == 0 ? "" : "  ") + padded(group.title, std::max(needed, span), column > 0);
    column += group.columns;
  }
  return line + '\n';
}

}  // namespace

std::string aligned(const TextRows& rows, const std::vector<ColumnGroup>& groups) {
  std::vector<size_t> widths = widths_of(rows);
  std::string out = groups.empty() ? "" : title_line(groups, &widths);
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) out += (i == 0 ? "" : "  ") + padded(row[i], widths[i], i > 0);
    out += '\n';
  }
  return out;
}

}  // namespace bitfed
