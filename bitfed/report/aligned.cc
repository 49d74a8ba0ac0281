#include "bitfed/report/aligned.h"

#include <algorithm>

#include "bitfed/report/markup.h"

namespace bitfed {
namespace {

std::string padded(const std::string& text, size_t width, bool right) {
  const std::string space(width - std::min(width, character_count(text)), ' ');
  return right ? space + text : text + space;
}

}  // namespace

std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::string out;
  std::vector<size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], character_count(row[i]));
  }
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) out += (i == 0 ? "" : "  ") + padded(row[i], widths[i], i > 0);
    out += '\n';
  }
  return out;
}

}  // namespace bitfed
