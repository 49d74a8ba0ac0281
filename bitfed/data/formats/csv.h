#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "bitfed/data/dataset.h"

namespace bitfed {

struct CsvOptions {
  std::string label;                // the column to predict; its strings are the classes
  std::string person;               // the person of a row: a column, or several as "age,height"; may be empty
  std::vector<std::string> ignore;  // columns to skip; "" or "column 3" is a column without a name
  std::vector<std::string> only = {};  // the numeric columns, in this order; empty: all other columns
};

// A table from CSV text with a header. All columns except those named in the options (or exactly those of
// `only`) must be numeric. Rows in which a used cell (a number, the label, the person) is empty or one of
// null, NULL, NA, N/A, NaN, nan, None and ? are dropped and counted in `dropped_rows`; any other cell that is
// not a number is an error. So are a label column of real values, a person that is the label, and a data
// frame's index. Classes and people are sorted as strings, or by value where all are integers. `name` is for
// error messages, which also name the line and the column.
Dataset parse_csv(std::string_view text, std::string_view name, const CsvOptions& options);
// The names of a list of columns, "a, b": without the spaces around them.
std::vector<std::string> split_names(std::string_view list);

// Whether the header of the file has all of these columns, "a,b"; true for none.
bool has_columns(const std::filesystem::path& path, const std::string& columns);

Dataset load_csv(const std::filesystem::path& path, const CsvOptions& options);

}  // namespace bitfed
