#include "bitfed/data/check_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

void expect_size(const Dataset& data, std::string_view field, size_t found, size_t expected) {
  if (found != expected)
    throw input_error("{}: {}: found {}, expected {} for {} samples", data.name, field, found, expected,
                      data.size());
}

template <typename T>
void expect_below(const Dataset& data, std::string_view field, const std::vector<T>& values, size_t limit) {
  for (const T value : values) {
    if (value >= limit)
      throw input_error("{}: {}: found {}, expected less than {}", data.name, field, value, limit);
  }
}

// Names stand in reports, tables and sources, and models are asked by them: each is one line and means one
// thing.
void check_names(const Dataset& data, std::string_view field, const std::vector<std::string>& names) {
  const auto is_control = [](unsigned char c) { return c < 0x20; };
  std::unordered_set<std::string_view> seen;
  for (const std::string& name : names) {
    if (std::any_of(name.begin(), name.end(), is_control))
      throw input_error("{}: {}: found {:?}, expected names without control characters", data.name, field,
                        name);
    if (name.empty() && field != "columns")
      throw input_error("{}: {}: found one without a name, expected a name for each", data.name, field);
    if (!seen.insert(name).second && !name.empty())
      throw input_error("{}: {}: found '{}' twice, expected distinct names", data.name, field, name);
  }
}

void check_dataset(const Dataset& data) {
  if (data.is_table() == (data.image_bytes() > 0))
    throw input_error("{}: expected either columns or images with a height, width and channels", data.name);
  expect_size(data, "pixels", data.pixels.size(), data.size() * data.image_bytes());
  expect_size(data, "values", data.values.size(), data.size() * data.columns.size());
  expect_below(data, "labels", data.labels, data.class_count());
  if (!data.groups.empty()) expect_size(data, "groups", data.groups.size(), data.size());
  expect_below(data, "groups", data.groups, data.group_names.size());
  check_names(data, "classes", data.class_names);
  check_names(data, "people", data.group_names);
  check_names(data, "columns", data.columns);
}

}  // namespace

void check_split(const DataSplit& split) {
  check_dataset(split.train);
  check_dataset(split.test);
  const Dataset& train = split.train;
  const Dataset& test = split.test;
  if (train.class_count() < 2) {
    throw input_error("{}: found {}, expected at least two classes", train.name,
                      train.class_names.empty() ? "none" : "one class, '" + train.class_names[0] + "'");
  }
  if (train.columns != test.columns || train.height != test.height || train.width != test.width ||
      train.channels != test.channels || train.class_names != test.class_names ||
      train.group_names != test.group_names) {
    throw input_error(
        "{}: test samples of another shape, or other columns, classes or groups than training "
        "samples",
        train.name);
  }
}

}  // namespace bitfed
