#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "bitfed/data/dataset.h"

namespace bitfed {

struct CsvOptions {
  std::string label;   // the column to predict; its texts are the classes
  std::string person;  // whom a row belongs to: a column, or several as "age,height"; may be empty
  std::vector<std::string> ignore;     // columns that are left out; "" is one without a name
  std::vector<std::string> only = {};  // the columns of numbers, in this order; empty: all that are left
};

// A table from CSV text with a header. All columns but those of the options (or those of `only`) must be
// numbers. Rows in which a cell that counts (a number, the label, the person) is empty or one of null, NULL,
// NA, N/A, NaN, nan and None are dropped, and counted in `dropped_rows`; anything else that is no number is
// an error. Classes and people are in order of their texts, or of their values where all are whole numbers.
// `name` is for the errors, which also name the line and the column.
Dataset parse_csv(std::string_view text, std::string_view name, const CsvOptions& options);
Dataset load_csv(const std::filesystem::path& path, const CsvOptions& options);

}  // namespace bitfed
