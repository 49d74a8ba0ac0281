#include "cli/reproduced.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "bitfed/base/byte_io.h"

namespace bitfed::cli {
namespace {

std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts(1);
  for (const char c : name) {
    if (c == '/') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::optional<size_t> index_of(const PaperTable& table, const std::string& key) {
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].key == key) return i;
  }
  return std::nullopt;
}

ReproducedTable empty_table(const PaperTable& table, const ReproductionOptions& options) {
  ReproducedTable result;
  result.name = table.name;
  result.title = table.title;
  result.source = table.source;
  result.row_header = table.row_header;
  result.notes = table.notes;
  if (!options.set.empty()) {
    result.notes.push_back(fmt::format("All rows were run with --set {}, which the table does not say.",
                                       fmt::join(options.set, " --set ")));
  }
  result.seeds = seeds_of(table, options).size();
  if (options.quick) {
    result.quick = fmt::format("seed {} alone, {}", table.seeds.front(), fmt::join(table.quick, ", "));
  }
  for (const PaperColumn& column : table.columns) {
    const Metric& metric = column.metric;
    result.columns.push_back({column.name, metric.unit, metric.decimals, metric.lower_is_better,
                              index_of(table, column.against), false});
  }
  for (const PaperRow& row : table.rows) {
    ReproducedRow& shown = result.rows.emplace_back();
    shown.name = parts_of(row.name);
    for (size_t i = 0; i < table.columns.size(); ++i) {
      const std::optional<PaperFigure>& paper = row.paper[result.columns[i].against.value_or(i)];
      ReproducedCell& cell = shown.cells.emplace_back();
      if (paper) cell.paper = Published{paper->mean, paper->deviation};
    }
  }
  return result;
}

}  // namespace

std::string machine_of(const RunSummary& summary) {
  return fmt::format("{}{}; {} clients at once, {}, bitfed {}",
                     summary.machine.empty() ? "unknown machine" : summary.machine,
                     summary.device ? " with " + *summary.device : "", summary.threads.value_or(0),
                     summary.isa, summary.version);
}

ReproducedTable gather(const PaperTable& table, const ReproductionOptions& options,
                       const std::vector<ReproductionCell>& cells,
                       const std::map<size_t, std::string>& not_run) {
  ReproducedTable result = empty_table(table, options);
  for (const auto& [row, why] : not_run) result.rows[row].not_run = why;
  for (const ReproductionCell& cell : cells) {
    const std::optional<RunSummary> summary = finished_summary(cell);
    if (!summary) continue;
    for (size_t i = 0; i < table.columns.size(); ++i) {
      const std::string& method = table.columns[i].method;
      if (!method.empty() && method != cell.method) continue;
      const std::optional<double> value = table.columns[i].metric.value(*summary);
      if (value) result.rows[cell.row].cells[i].ours.push_back(*value);
    }
    const std::string machine = machine_of(*summary);
    auto& machines = result.machines;
    if (std::find(machines.begin(), machines.end(), machine) == machines.end()) machines.push_back(machine);
  }
  return result;
}

void write_reproduced(const ReproducedTable& table, const std::filesystem::path& folder) {
  create_folders(folder);
  write_file_atomically(folder / "table.md", reproduction_markdown(table));
  write_file_atomically(folder / "table.csv", reproduction_csv(table));
  write_file_atomically(folder / "table.tex", reproduction_latex(table));
  write_file_atomically(folder / "table.html", reproduction_page(table));
}

std::string row_line(const ReproducedTable& table, size_t row) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const ReproducedColumn& column = table.columns[i];
    const ReproducedCell& cell = table.rows[row].cells[i];
    const std::string paper =
        has_own_paper(table, i) ? fmt::format(" (paper {})", paper_text(cell, column)) : "";
    parts.push_back(fmt::format("{} {}{}", column.name, ours_text(cell, column, table.seeds), paper));
  }
  return fmt::format("{}: {}", row_name(table.rows[row]), fmt::join(parts, ", "));
}

}  // namespace bitfed::cli
