#pragma once

#include <cstdint>
#include <string>

#include "bitfed/base/config.h"
#include "bitfed/data/dataset.h"

namespace bitfed {

// How a table is split into training and test rows.
struct SplitSpec {
  // "time"            the last rows of each person, in the order of the file
  // "time-per-class"  the last rows of each class of a person: for recordings that contain each activity once
  // "stratified"      random rows of each class of a person: windows of one recording overlap, so that
  //                   neighbouring windows end up on both sides, and the split's notes say so
  // "random"          random rows of a person
  // Without a column of people, all rows belong to one person.
  std::string kind = "time";
  double test_fraction = 0.3;
};

// The keys `split` and `test_fraction` of a recipe's [data]; `fallback` where they are absent.
SplitSpec read_split(const Config& data, const SplitSpec& fallback);

// Of n rows that are split together, round(test_fraction * n) are for testing, but never all: every person
// keeps a training row, and a person with one row has no test rows. Both parts stay in the order of the file.
// A pure function of the rows, the spec and (stratified) the seed; an input_error where no person has a test
// row.
DataSplit split_table(const Dataset& dataset, const SplitSpec& spec, uint64_t seed);

}  // namespace bitfed
