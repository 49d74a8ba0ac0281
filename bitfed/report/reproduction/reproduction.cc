#include "bitfed/report/reproduction/reproduction.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "bitfed/report/humanise.h"
#include "bitfed/report/pages/aligned.h"

namespace bitfed {
namespace {

constexpr const char* kNothing = "–";
constexpr const char* kMark = " ▼";

std::string fixed(double value, const ReproducedColumn& column) {
  return fmt::format("{:.{}f}", value, column.decimals);
}

// How much better ours is than the paper's mean.
std::optional<double> gain(const ReproducedCell& cell, const ReproducedColumn& column) {
  const std::optional<double> difference = difference_of(cell);
  if (!difference) return std::nullopt;
  return column.lower_is_better ? -*difference : *difference;
}

bool units_differ(const ReproducedTable& table) {
  return std::any_of(table.columns.begin(), table.columns.end(), [&](const ReproducedColumn& column) {
    return column.unit != table.columns.front().unit;
  });
}

// The strings of a cell, as far as its column has them: paper, ours, difference.
void append_cell(const ReproducedTable& table, const ReproducedRow& row, size_t column,
                 std::vector<std::string>* texts) {
  const ReproducedCell& cell = row.cells[column];
  const ReproducedColumn& c = table.columns[column];
  if (has_own_paper(table, column)) texts->push_back(paper_text(cell, c));
  texts->push_back(ours_text(cell, c, table.seeds) + (is_worse(cell, c) ? kMark : ""));
  if (has_paper(table, column)) texts->push_back(difference_text(cell, c));
}

bool has_mark(const ReproducedTable& table, const std::vector<size_t>& rows, size_t column) {
  return std::any_of(rows.begin(), rows.end(), [&](size_t row) {
    return is_worse(table.rows[row].cells[column], table.columns[column]);
  });
}

// Which published column is compared with a column that the paper does not have.
std::string against_text(const ReproducedTable& table) {
  std::string text;
  for (const ReproducedColumn& column : table.columns) {
    if (!column.against) continue;
    text +=
        fmt::format(" {} is compared with the paper's {}.", column.name, table.columns[*column.against].name);
  }
  return text;
}

std::vector<std::string> cell_titles(const ReproducedTable& table, size_t column) {
  std::vector<std::string> titles;
  if (has_own_paper(table, column)) titles.emplace_back("paper");
  titles.emplace_back("ours");
  if (has_paper(table, column)) titles.push_back(difference_title(table, column));
  return titles;
}

// A string as a cell of a markdown table.
std::string in_markdown(std::string text) {
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2))
    text.insert(at, "\\");
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += fmt::format(" {} |", in_markdown(cell));
  return line + "\n";
}

// RFC 4180.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted;
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return '"' + quoted + '"';
}

std::string state_of(const ReproducedRow& row, const ReproducedCell& cell, size_t seeds) {
  if (cell.ours.size() == seeds) return "done";
  if (!cell.ours.empty()) return fmt::format("{} of {} seeds", cell.ours.size(), seeds);
  return row.not_run.empty() ? "not run" : row.not_run;
}

std::string number_or_nothing(const std::optional<double>& value) {
  return value ? exact_number(*value) : "";
}

}  // namespace

std::string row_name(const ReproducedRow& row) {
  return fmt::format("{}", fmt::join(row.name, "/"));
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation_of(const std::vector<double>& values, bool is_sample) {
  if (values.size() < 2) return 0;
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - (is_sample ? 1 : 0)));
}

std::optional<double> difference_of(const ReproducedCell& cell) {
  if (!cell.paper || cell.ours.empty()) return std::nullopt;
  return mean_of(cell.ours) - cell.paper->mean;
}

bool is_worse(const ReproducedCell& cell, const ReproducedColumn& column) {
  const std::optional<double> better_by = gain(cell, column);
  return better_by && -*better_by > cell.paper->deviation;
}

bool is_better(const ReproducedCell& cell, const ReproducedColumn& column) {
  const std::optional<double> better_by = gain(cell, column);
  return better_by && *better_by > cell.paper->deviation;
}

std::string ours_text(const ReproducedCell& cell, const ReproducedColumn& column, size_t seeds) {
  if (cell.ours.empty()) return kNothing;
  std::string text = fixed(mean_of(cell.ours), column);
  if (cell.ours.size() > 1) text += " ± " + fixed(deviation_of(cell.ours, column.is_sample), column);
  if (cell.ours.size() < seeds) text += fmt::format(" ({} of {} seeds)", cell.ours.size(), seeds);
  return text;
}

std::string paper_text(const ReproducedCell& cell, const ReproducedColumn& column) {
  if (!cell.paper) return kNothing;
  const std::string mean = fixed(cell.paper->mean, column);
  return cell.paper->deviation == 0 ? mean : mean + " ± " + fixed(cell.paper->deviation, column);
}

std::string difference_text(const ReproducedCell& cell, const ReproducedColumn& column) {
  const std::optional<double> difference = difference_of(cell);
  return difference ? fmt::format("{:+.{}f}", *difference, column.decimals) : kNothing;
}

bool has_paper(const ReproducedTable& table, size_t column) {
  return std::any_of(table.rows.begin(), table.rows.end(),
                     [&](const ReproducedRow& row) { return row.cells[column].paper.has_value(); });
}

bool has_own_paper(const ReproducedTable& table, size_t column) {
  return has_paper(table, column) && !table.columns[column].against;
}

bool has_any_paper(const ReproducedTable& table) {
  for (size_t column = 0; column < table.columns.size(); ++column) {
    if (has_paper(table, column)) return true;
  }
  return false;
}

std::string quick_text(const ReproducedTable& table) {
  return table.quick.empty() ? "" : fmt::format("QUICK TRIAL, not the paper's table: {}.", table.quick);
}

std::string legend_text(const ReproducedTable& table) {
  const char* deviation = table.is_sweep ? "sample standard deviation" : "standard deviation";
  std::string text = table.seeds > 1 ? fmt::format("Mean ± {} of {} seeds", deviation, table.seeds)
                                     : std::string("One seed");
  if (!units_differ(table)) text += ", in " + table.columns.front().unit;
  if (table.is_sweep) return text + ". –: not run.";
  return text + ". ▼: worse than the paper's mean by more than the paper's standard deviation. –: not run.";
}

std::string column_title(const ReproducedTable& table, size_t column) {
  const ReproducedColumn& c = table.columns[column];
  return units_differ(table) ? fmt::format("{} [{}]", c.name, c.unit) : c.name;
}

std::string difference_title(const ReproducedTable& table, size_t column) {
  const std::optional<size_t> against = table.columns[column].against;
  return against ? fmt::format("to the paper's {}", table.columns[*against].name) : "difference";
}

std::vector<std::string> not_run_texts(const ReproducedTable& table) {
  std::map<std::string, std::vector<std::string>> rows;
  for (const ReproducedRow& row : table.rows) {
    if (!row.not_run.empty()) rows[row.not_run].push_back(row_name(row));
  }
  std::vector<std::string> lines;
  for (const auto& [why, names] : rows) {
    lines.push_back(fmt::format("{}: not run, {}.", fmt::join(names, ", "), why));
  }
  return lines;
}

std::string reproduction_text(const ReproducedTable& table, const std::vector<size_t>& rows) {
  std::vector<ColumnGroup> groups = {{"", 1}};
  TextRows lines = {{fmt::format("{}", fmt::join(table.row_header, "/"))}};
  for (size_t column = 0; column < table.columns.size(); ++column) {
    if (!has_any_paper(table)) {
      lines[0].push_back(column_title(table, column));
      continue;
    }
    const size_t before = lines[0].size();
    if (has_own_paper(table, column)) lines[0].emplace_back("paper");
    lines[0].emplace_back("ours");
    if (has_paper(table, column)) lines[0].emplace_back("difference");
    groups.push_back({column_title(table, column), lines[0].size() - before});
  }
  if (!has_any_paper(table)) groups.clear();
  for (const size_t index : rows) {
    std::vector<std::string>& line = lines.emplace_back();
    line.push_back(row_name(table.rows[index]));
    for (size_t column = 0; column < table.columns.size(); ++column) {
      append_cell(table, table.rows[index], column, &line);
      std::string& ours = line[line.size() - (has_paper(table, column) ? 2 : 1)];
      // Keeps the numbers aligned where another row has a mark.
      if (!ours.ends_with(kMark) && has_mark(table, rows, column)) ours += std::string(2, ' ');
    }
  }
  std::string notes;
  for (const std::string& note : table.notes) notes += fmt::format("- {}\n", note);
  const std::string quick = quick_text(table);
  return fmt::format("{}{}\n\n{}\n{}{}\n{}", quick.empty() ? "" : quick + "\n", table.title,
                     aligned(lines, groups), legend_text(table), against_text(table), notes);
}

std::string reproduction_markdown(const ReproducedTable& table) {
  std::string text = fmt::format("# {}{}\n\n", table.quick.empty() ? "" : "Quick trial: ", table.title);
  if (!table.quick.empty()) text += fmt::format("**{}**\n\n", quick_text(table));
  if (!table.source.empty()) text += fmt::format("{}\n\n", table.source);
  text += fmt::format("{}\n\n", legend_text(table));
  std::vector<std::string> head = table.row_header;
  for (size_t column = 0; column < table.columns.size(); ++column) {
    for (const std::string& title : cell_titles(table, column)) {
      const std::string whose = has_any_paper(table) ? ", " + title : "";
      head.push_back(column_title(table, column) + whose);
    }
  }
  text += markdown_row(head) + markdown_row(std::vector<std::string>(head.size(), "---"));
  for (const ReproducedRow& row : table.rows) {
    std::vector<std::string> cells = row.name;
    for (size_t column = 0; column < table.columns.size(); ++column) append_cell(table, row, column, &cells);
    text += markdown_row(cells);
  }
  for (const std::string& line : not_run_texts(table)) text += fmt::format("\n{}\n", line);
  if (!table.notes.empty()) text += "\nKnown differences and notes:\n\n";
  for (const std::string& note : table.notes) text += fmt::format("- {}\n", note);
  for (const std::string& machine : table.machines) text += fmt::format("- Run on: {}.\n", machine);
  return text;
}

std::string reproduction_csv(const ReproducedTable& table) {
  std::string text =
      "table,quick,row,column,unit,paper_column,paper_mean,paper_deviation,ours_mean,ours_deviation,seeds,"
      "difference,worse,state\n";
  for (const ReproducedRow& row : table.rows) {
    for (size_t i = 0; i < table.columns.size(); ++i) {
      const ReproducedColumn& column = table.columns[i];
      const ReproducedCell& cell = row.cells[i];
      const auto paper = [&](double Published::*field) {
        return cell.paper ? exact_number((*cell.paper).*field) : "";
      };
      const std::string compared = cell.paper ? table.columns[column.against.value_or(i)].name : "";
      const std::vector<std::string> fields = {
          table.name,
          table.quick,
          row_name(row),
          column.name,
          column.unit,
          compared,
          paper(&Published::mean),
          paper(&Published::deviation),
          cell.ours.empty() ? "" : exact_number(mean_of(cell.ours)),
          cell.ours.empty() ? "" : exact_number(deviation_of(cell.ours, column.is_sample)),
          fmt::format("{}", cell.ours.size()),
          number_or_nothing(difference_of(cell)),
          difference_of(cell) ? (is_worse(cell, column) ? "yes" : "no") : "",
          state_of(row, cell, table.seeds)};
      for (size_t f = 0; f < fields.size(); ++f) text += (f == 0 ? "" : ",") + csv_field(fields[f]);
      text += '\n';
    }
  }
  return text;
}

}  // namespace bitfed
