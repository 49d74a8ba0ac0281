#pragma once

#include <cstdint>
#include <string>

#include "bitfed/base/config.h"
#include "bitfed/data/dataset.h"

namespace bitfed {

// How a table is cut into training and test rows.
struct SplitSpec {
  // "time"            the last rows of each person, in the order of the file
  // "time-per-class"  the last rows of each class of a person: for recordings that do each activity once
  // "stratified"      of each class of a person rows drawn at random: windows cut from one recording overlap,
  //                   so neighbours come to lie on both sides, and the split's notes say so
  // Where the data knows no people, all rows are one person's.
  std::string kind = "time";
  double test_fraction = 0.3;
};

// The keys `split` and `test_fraction` of a recipe's [data]; `fallback` where they are absent.
SplitSpec read_split(const Config& data, const SplitSpec& fallback);

// Of n rows that are cut together round(test_fraction * n) are for testing, but never all: everyone keeps a
// row to train with, and who has one row has none to test with. Both parts stay in the order of the file.
// A pure function of the rows, the spec and (stratified) the seed; an input_error where nobody has a test
// row.
DataSplit split_table(const Dataset& dataset, const SplitSpec& spec, uint64_t seed);

}  // namespace bitfed
