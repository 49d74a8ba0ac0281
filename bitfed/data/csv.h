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
  std::vector<std::string> ignore;  // columns that are left out; "" is one without a name
};

// A table from CSV text with a header. All columns but those of the options must be numbers in every row.
// Classes and people are in order of their texts, or of their values where all are whole numbers. `name`
// is for the errors, which also name the line and the column.
Dataset parse_csv(std::string_view text, std::string_view name, const CsvOptions& options);
Dataset load_csv(const std::filesystem::path& path, const CsvOptions& options);

// What is a unit of the split below.
enum class SplitUnit {
  kPerson,         // the rows of a person; all rows where the data knows no persons
  kPersonAndClass  // the rows of a class of a person: for recordings that do each activity once
};

// Cuts a table into training and test rows: the last `test_fraction` of each unit's rows, in the order of
// the file, are for testing. Not drawn at random: windows cut from one recording overlap, and their
// neighbours would be on both sides.
DataSplit split_table(const Dataset& dataset, double test_fraction, SplitUnit unit = SplitUnit::kPerson);

}  // namespace bitfed
