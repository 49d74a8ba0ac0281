#pragma once

#include <optional>
#include <string>
#include <vector>

namespace bitfed {

// A table of runs, means over seeds, for all forms of output: a paper's table next to our own runs of it, or
// a sweep over settings, which has no published figures.

struct ReproducedColumn {
  std::string name;
  std::string unit;
  int decimals = 2;
  bool lower_is_better = false;
  std::optional<size_t> against;  // the column whose published figures it is compared with; empty: its own
  bool is_sample = false;         // its standard deviation is the sample's (n - 1), not the population's
};

struct Published {
  double mean = 0;
  double deviation = 0;
};

struct ReproducedCell {
  std::optional<Published> paper;  // of the column that it is compared with
  std::vector<double> ours;        // one per seed that has run
};

struct ReproducedRow {
  std::vector<std::string> name;  // its parts
  std::string not_run;            // why not, where there is a reason: "data set 'svhn' is not here"
  std::vector<ReproducedCell> cells;
};

struct ReproducedTable {
  std::string name;  // "fedtmos:table1"
  std::string title;
  std::string source;
  std::string
      quick;  // what a quick trial did instead of the table's settings; empty: the settings themselves
  bool is_sweep = false;
  size_t seeds = 1;
  std::vector<std::string> row_header;
  std::vector<ReproducedColumn> columns;
  std::vector<ReproducedRow> rows;
  std::vector<std::string> notes;
  std::vector<std::string> machines;  // that the runs were made on
};

std::string row_name(const ReproducedRow& row);  // "mnist/Dir(0.1)"

double mean_of(const std::vector<double>& values);
// The standard deviation of the population, as in the papers' tables and numpy; or of a sample, dividing by
// n - 1. 0 for one value.
double deviation_of(const std::vector<double>& values, bool is_sample = false);

// Ours minus the paper's, in the column's unit; empty where either is missing.
std::optional<double> difference_of(const ReproducedCell& cell);

// Worse than the paper's mean by more than the paper's standard deviation, marked by ▼.
bool is_worse(const ReproducedCell& cell, const ReproducedColumn& column);
// Better by more than that.
bool is_better(const ReproducedCell& cell, const ReproducedColumn& column);

// "97.10 ± 0.42", "97.10" where there is one seed, "97.10 (1 of 3 seeds)", "–".
std::string ours_text(const ReproducedCell& cell, const ReproducedColumn& column, size_t seeds);
std::string paper_text(const ReproducedCell& cell, const ReproducedColumn& column);
std::string difference_text(const ReproducedCell& cell, const ReproducedColumn& column);

// "QUICK TRIAL, not the paper's table: …"; empty for a table in full.
std::string quick_text(const ReproducedTable& table);
// Explains figures and marks.
std::string legend_text(const ReproducedTable& table);
// The column's name, followed by its unit where columns have different units.
std::string column_title(const ReproducedTable& table, size_t column);
// "difference", or "to the paper's FedTMOS" for a column that is compared with another one.
std::string difference_title(const ReproducedTable& table, size_t column);
// Whether there are published figures to compare the column with, and whether they are its own.
bool has_paper(const ReproducedTable& table, size_t column);
bool has_own_paper(const ReproducedTable& table, size_t column);
bool has_any_paper(const ReproducedTable& table);  // not a sweep: its columns have one part, without a title

// "svhn/S(2), svhn/S(3): not run, …", one line per reason.
std::vector<std::string> not_run_texts(const ReproducedTable& table);

// Aligned columns for a terminal; only the rows with these indices.
std::string reproduction_text(const ReproducedTable& table, const std::vector<size_t>& rows);
std::string reproduction_markdown(const ReproducedTable& table);
// One line per cell, numbers in full precision.
std::string reproduction_csv(const ReproducedTable& table);
// A tabular environment for LaTeX with booktabs, with what it means as comments.
std::string reproduction_latex(const ReproducedTable& table);
// One self-contained page with the table and pictures of it.
std::string reproduction_page(const ReproducedTable& table);

}  // namespace bitfed
