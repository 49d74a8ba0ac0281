#include <fmt/format.h>

#include <fmt/ranges.h>
#include <algorithm>

#include <string_view>
#include <utility>

#include "bitfed/report/reproduction/reproduction.h"

namespace bitfed {
namespace {

// The ten special characters, and those of our own texts that LaTeX's fonts lack.
std::string in_latex(const std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> kEscapes[] = {{"\\", "\\textbackslash{}"},
                                                                        {"&", "\\&"},
                                                                        {"%", "\\%"},
                                                                        {"$", "\\$"},
                                                                        {"#", "\\#"},
                                                                        {"_", "\\_"},
                                                                        {"{", "\\{"},
                                                                        {"}", "\\}"},
                                                                        {"~", "\\textasciitilde{}"},
                                                                        {"^", "\\textasciicircum{}"},
                                                                        {" ± ", " $\\pm$ "},
                                                                        {"–", "--"},
                                                                        {"\n", " "}};
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const std::string_view rest = std::string_view(text).substr(i);
    size_t taken = 0;
    for (const auto& [plain, escaped] : kEscapes) {
      if (!rest.starts_with(plain)) continue;
      result += escaped;
      taken = plain.size();
      break;
    }
    if (taken == 0) result += text[i];
    i += taken == 0 ? 1 : taken;
  }
  return result;
}

std::string line(const std::vector<std::string>& cells) {
  return fmt::format("{} \\\\\n", fmt::join(cells, " & "));
}

// Signed numbers as mathematics, so that minus is a minus.
std::string difference_in_latex(const std::string& text) {
  return text.starts_with('+') || text.starts_with('-') ? "$" + text + "$" : in_latex(text);
}

void append_cell(const ReproducedTable& table, const ReproducedRow& row, size_t column,
                 std::vector<std::string>* cells) {
  const ReproducedCell& cell = row.cells[column];
  const ReproducedColumn& c = table.columns[column];
  if (has_own_paper(table, column)) cells->push_back(in_latex(paper_text(cell, c)));
  cells->push_back(in_latex(ours_text(cell, c, table.seeds)) +
                   (is_worse(cell, c) ? " $\\triangledown$" : ""));
  if (has_paper(table, column)) cells->push_back(difference_in_latex(difference_text(cell, c)));
}

// Two lines: the columns' names over their parts. Of a sweep one line: its columns have one part.
std::string head(const ReproducedTable& table) {
  std::vector<std::string> groups(table.row_header.size());
  std::vector<std::string> parts;
  for (const std::string& name : table.row_header) parts.push_back(in_latex(name));
  for (size_t column = 0; column < table.columns.size(); ++column) {
    const size_t before = parts.size();
    if (has_own_paper(table, column)) parts.emplace_back("paper");
    parts.emplace_back(has_paper(table, column) ? "ours" : "");
    if (has_paper(table, column)) parts.push_back(in_latex(difference_title(table, column)));
    groups.push_back(fmt::format("\\multicolumn{{{}}}{{c}}{{{}}}", parts.size() - before,
                                 in_latex(column_title(table, column))));
  }
  if (!has_any_paper(table)) {
    std::copy_n(parts.begin(), table.row_header.size(), groups.begin());
    return line(groups);
  }
  return line(groups) + line(parts);
}

std::string comment(const std::string& text) {
  std::string result = "% ";
  for (const char c : text) result += c == '\n' ? ' ' : c;
  return result + "\n";
}

}  // namespace

std::string reproduction_latex(const ReproducedTable& table) {
  std::string columns(table.row_header.size(), 'l');
  for (size_t column = 0; column < table.columns.size(); ++column)
    columns +=
        std::string(1 + (has_own_paper(table, column) ? 1 : 0) + (has_paper(table, column) ? 1 : 0), 'r');
  std::string text = comment(table.title) + comment(legend_text(table));
  if (!table.quick.empty()) text += comment(quick_text(table));
  text += comment("Needs \\usepackage{booktabs,amssymb}");
  text += fmt::format("\\begin{{tabular}}{{{}}}\n\\toprule\n{}\\midrule\n", columns, head(table));
  for (const ReproducedRow& row : table.rows) {
    std::vector<std::string> cells;
    for (const std::string& part : row.name) cells.push_back(in_latex(part));
    for (size_t column = 0; column < table.columns.size(); ++column) append_cell(table, row, column, &cells);
    text += line(cells);
  }
  return text + "\\bottomrule\n\\end{tabular}\n";
}

}  // namespace bitfed
