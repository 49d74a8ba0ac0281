#include <fmt/format.h>

#include <algorithm>

#include "bitfed/report/charts/charts.h"
#include "bitfed/report/markup.h"
#include "bitfed/report/pages/page_parts.h"
#include "bitfed/report/reproduction/reproduction.h"

namespace bitfed {
namespace {

std::string td(std::string_view classes, std::string_view text) {
  return fmt::format("<td class=\"{}\">{}</td>", classes, escape_markup(text));
}

std::string cell_html(const ReproducedTable& table, const ReproducedRow& row, size_t column) {
  const ReproducedColumn& c = table.columns[column];
  const ReproducedCell& cell = row.cells[column];
  const bool own = has_own_paper(table, column);
  std::string html = own ? td("paper first", paper_text(cell, c)) : "";
  html += td(own ? "ours" : "ours first", ours_text(cell, c, table.seeds) + (is_worse(cell, c) ? " ▼" : ""));
  if (has_paper(table, column)) {
    const char* verdict = is_worse(cell, c) ? "worse" : is_better(cell, c) ? "better" : "same";
    html += td(verdict, difference_text(cell, c));
  }
  return html;
}

std::string row_html(const ReproducedTable& table, size_t index) {
  const ReproducedRow& row = table.rows[index];
  // Rows that share the first part of their name stand together under it.
  const bool opens = index == 0 || row.name.front() != table.rows[index - 1].name.front();
  std::string html = opens && index > 0 && row.name.size() > 1 ? "<tr class=\"opens\">" : "<tr>";
  for (size_t part = 0; part < row.name.size(); ++part) {
    const bool repeats = part == 0 && !opens && row.name.size() > 1;
    html +=
        fmt::format("<th scope=\"row\" class=\"name\">{}</th>", repeats ? "" : escape_markup(row.name[part]));
  }
  for (size_t column = 0; column < table.columns.size(); ++column) html += cell_html(table, row, column);
  return html + "</tr>\n";
}

std::string head_html(const ReproducedTable& table) {
  std::string groups;
  std::string parts;
  const bool compares = has_any_paper(table);  // else there is nothing to tell ours from: one row of names
  for (const std::string& name : table.row_header) {
    groups += fmt::format("<th scope=\"col\" rowspan=\"{}\" class=\"name\">{}</th>", compares ? 2 : 1,
                          escape_markup(name));
  }
  for (size_t column = 0; column < table.columns.size(); ++column) {
    const bool own = has_own_paper(table, column);
    const bool compared = has_paper(table, column);
    groups += fmt::format("<th scope=\"colgroup\" colspan=\"{}\" class=\"group first\">{}</th>",
                          1 + (own ? 1 : 0) + (compared ? 1 : 0), escape_markup(column_title(table, column)));
    if (own) parts += "<th scope=\"col\" class=\"first\">paper</th>";
    parts += own ? "<th scope=\"col\">ours</th>" : "<th scope=\"col\" class=\"first\">ours</th>";
    if (compared) {
      parts += fmt::format("<th scope=\"col\">{}</th>", escape_markup(difference_title(table, column)));
    }
  }
  if (compares) groups += "</tr>\n<tr>" + parts;
  return fmt::format("<thead><tr>{}</tr></thead>\n", groups);
}

std::string table_html(const ReproducedTable& table) {
  std::string rows;
  for (size_t i = 0; i < table.rows.size(); ++i) rows += row_html(table, i);
  return fmt::format(
      "<p>{}</p>\n<div class=\"scroll whole\"><table "
      "class=\"reproduced\">{}<tbody>\n{}</tbody></table></div>\n",
      escape_markup(legend_text(table)), head_html(table), rows);
}

// Rows that have run at all; the paper alone is no picture.
std::vector<const ReproducedRow*> rows_run(const ReproducedTable& table) {
  std::vector<const ReproducedRow*> rows;
  for (const ReproducedRow& row : table.rows) {
    if (std::any_of(row.cells.begin(), row.cells.end(),
                    [](const ReproducedCell& cell) { return !cell.ours.empty(); })) {
      rows.push_back(&row);
    }
  }
  return rows;
}

RangeSeries paper_series(const ReproducedTable& table, size_t column) {
  RangeSeries series{"paper", true, {}};
  for (const ReproducedRow* row : rows_run(table)) {
    const auto& paper = row->cells[column].paper;
    series.marks.push_back(paper ? std::optional(RangeMark{paper->mean, paper->deviation}) : std::nullopt);
  }
  return series;
}

RangeSeries our_series(const ReproducedTable& table, size_t column, const std::string& name) {
  RangeSeries series{name, false, {}};
  for (const ReproducedRow* row : rows_run(table)) {
    const std::vector<double>& ours = row->cells[column].ours;
    series.marks.push_back(
        ours.empty()
            ? std::nullopt
            : std::optional(RangeMark{mean_of(ours), deviation_of(ours, table.columns[column].is_sample)}));
  }
  return series;
}

// The paper's column, ours, and all columns that are compared with it.
std::string chart_of(const ReproducedTable& table, size_t column) {
  const ReproducedColumn& c = table.columns[column];
  RangeChart chart{c.name, c.unit, c.decimals, c.lower_is_better, {}, {}};
  for (const ReproducedRow* row : rows_run(table)) chart.rows.push_back(row_name(*row));
  if (has_own_paper(table, column)) {
    chart.series = {paper_series(table, column), our_series(table, column, c.name + ", ours")};
  } else {
    chart.series = {our_series(table, column, c.name)};
  }
  for (size_t other = 0; other < table.columns.size(); ++other) {
    if (table.columns[other].against == column) {
      chart.series.push_back(our_series(table, other, table.columns[other].name));
    }
  }
  return range_chart(chart);
}

std::string chart_cards(const ReproducedTable& table) {
  std::string html;
  for (size_t column = 0; column < table.columns.size(); ++column) {
    if (has_own_paper(table, column) || table.is_sweep)
      html += chart_card(escape_markup(column_title(table, column)), chart_of(table, column));
  }
  return html;
}

// How many rows of a column keep up with the paper.
Figure column_figure(const ReproducedTable& table, size_t column) {
  const ReproducedColumn& c = table.columns[column];
  size_t compared = 0;
  size_t worse = 0;
  for (const ReproducedRow& row : table.rows) {
    if (!difference_of(row.cells[column])) continue;
    ++compared;
    if (is_worse(row.cells[column], c)) ++worse;
  }
  return {c.name, fmt::format("{} / {}", compared - worse, compared),
          fmt::format("rows reach the paper's {} or fall short by at most its standard deviation",
                      table.columns[c.against.value_or(column)].name)};
}

std::string tiles(const ReproducedTable& table) {
  const auto complete = [&](const ReproducedRow& row) {
    return std::all_of(row.cells.begin(), row.cells.end(),
                       [&](const ReproducedCell& cell) { return cell.ours.size() == table.seeds; });
  };
  const auto count = std::count_if(table.rows.begin(), table.rows.end(), complete);
  std::vector<Figure> figures = {{"Rows run", fmt::format("{} / {}", count, table.rows.size()),
                                  table.seeds == 1 ? "one seed" : fmt::format("{} seeds each", table.seeds)}};
  for (size_t column = 0; column < table.columns.size(); ++column) {
    if (has_paper(table, column)) figures.push_back(column_figure(table, column));
  }
  return figure_tiles(figures);
}

std::string notes_html(const ReproducedTable& table) {
  std::string items;
  for (const std::string& note : table.notes) items += fmt::format("<li>{}</li>\n", escape_markup(note));
  for (const std::string& line : not_run_texts(table)) {
    items += fmt::format("<li>{}</li>\n", escape_markup(line));
  }
  return items.empty() ? "" : card("Known differences and notes", "<ul>" + items + "</ul>", true);
}

std::string header(const ReproducedTable& table) {
  std::string html = fmt::format("<p class=\"eyebrow\">bitfed {} {}</p>\n<h1>{}</h1>\n",
                                 table.is_sweep ? "sweep" : "reproduce", escape_markup(table.name),
                                 escape_markup(table.title));
  if (!table.source.empty()) html += fmt::format("<p class=\"facts\">{}</p>\n", escape_markup(table.source));
  if (!table.quick.empty()) {
    html += fmt::format("<p class=\"banner\">{}</p>\n", escape_markup(quick_text(table)));
  }
  return fmt::format("<header>\n{}</header>\n", html);
}

std::string footer(const ReproducedTable& table) {
  std::string html;
  for (const std::string& machine : table.machines) {
    html += fmt::format("<p>Run on: {}</p>\n", escape_markup(machine));
  }
  return fmt::format("<footer>\n{}</footer>\n", html);
}

}  // namespace

std::string reproduction_page(const ReproducedTable& table) {
  const std::string title = (table.quick.empty() ? "" : "Quick trial: ") + table.title;
  return html_document(
      title,
      fmt::format("{}<main>\n{}<div class=\"cards\">\n{}{}{}</div>\n</main>\n{}", header(table), tiles(table),
                  card(table.is_sweep ? "Settings" : "Paper and ours", table_html(table), true),
                  chart_cards(table), notes_html(table), footer(table)));
}

}  // namespace bitfed
