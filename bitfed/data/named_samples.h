#pragma once

#include <string>
#include <vector>

#include "bitfed/data/dataset.h"

namespace bitfed {

// Samples as a file has them: their classes and people are still strings, since the files of one data set
// need not show all of them.
struct NamedSamples {
  Dataset data;                      // the shape and the pixels or values; no labels, classes, groups
  std::vector<std::string> classes;  // of each sample
  std::vector<std::string> people;   // of each sample; empty: not known
  std::vector<std::string> class_names = {};  // in the order of the sorted classes, where the file has names

  size_t size() const { return classes.size(); }
};

// Appends the samples of another file of the same set. An input_error where shape or columns differ.
void append(NamedSamples* samples, NamedSamples more);

// Labels and groups by number: classes and people are sorted as strings, or by value where all are integers.
// `class_names`, if any, replaces the sorted classes. An input_error with `name` where classes are too many,
// real numbers, or not as many as class_names.
Dataset numbered(NamedSamples samples, const std::string& name, const std::vector<std::string>& class_names);

}  // namespace bitfed
