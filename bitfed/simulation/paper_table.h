#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bitfed/simulation/metrics.h"

namespace bitfed {

struct PaperFigure {
  double mean = 0;
  double deviation = 0;  // standard deviation; 0 where the paper gives none
};

struct PaperColumn {
  std::string key;  // names the column within the file
  std::string name;
  std::string method;  // empty in all columns: the method of the row's recipe
  Metric metric;
  std::string
      against;  // the key of the column whose published figures this one is compared with; empty: its own
};

struct PaperRow {
  std::string name;                               // its parts separated by '/': "mnist/Dir(0.1)"
  std::string recipe;                             // a file, relative to the folder of recipes
  std::vector<std::string> set;                   // overrides of it, key=value
  std::vector<std::optional<PaperFigure>> paper;  // one per column
};

// A table of a paper as data: what it published, and which federations give the same cells here. Its
// file, recipes/papers/PAPER-TABLE.toml, is specified in docs/reference/paper-table.md.
struct PaperTable {
  std::string name;               // "fedtmos:table1"
  std::filesystem::path recipes;  // the folder of recipes
  std::string source_file;
  std::string title;
  std::string source;  // the paper
  std::vector<std::string> row_header;
  std::vector<int64_t> seeds;
  std::vector<std::string> set;    // overrides of every row, before its own
  std::vector<std::string> quick;  // overrides of a quick trial, after all others
  std::string clients_from;        // the method whose trained clients all others fuse; empty: each its own
  std::vector<PaperColumn> columns;
  std::vector<PaperRow> rows;
  std::vector<std::string> notes;
};

// The tables that the folders' papers/ hold, sorted by name; of several with one name the first counts.
std::vector<std::string> paper_table_names(std::span<const std::filesystem::path> folders);

// Reads "fedtmos:table1" from the first folder that has it. A missing or malformed table is an
// input_error.
PaperTable load_paper_table(const std::string& name, std::span<const std::filesystem::path> folders);

// `text` is the file's content, `file` its name for errors.
PaperTable parse_paper_table(std::string_view text, const std::string& file);

// Whether a pattern of --rows selects the row: a glob over its name or over the leading parts of it, so that
// mnist selects mnist/Dir(0.1).
bool selects_row(const std::string& pattern, const std::string& name);

// The rows that any of the patterns selects, in order; all where there is no pattern. A pattern that selects
// nothing is an input_error.
std::vector<size_t> select_rows(const PaperTable& table, std::span<const std::string> patterns);

// The seeds, all of which must be the table's; all of the table's where there is none.
std::vector<int64_t> select_seeds(const PaperTable& table, std::span<const int64_t> seeds);

}  // namespace bitfed
