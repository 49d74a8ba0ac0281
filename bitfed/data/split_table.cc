#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "bitfed/base/error.h"
#include "bitfed/data/csv.h"

namespace bitfed {

DataSplit split_table(const Dataset& dataset, double test_fraction, SplitUnit unit) {
  std::map<std::pair<uint32_t, uint16_t>, std::vector<uint32_t>> units;
  for (uint32_t row = 0; row < dataset.size(); ++row) {
    const uint32_t person = dataset.groups.empty() ? 0 : dataset.groups[row];
    const uint16_t label = unit == SplitUnit::kPersonAndClass ? dataset.labels[row] : uint16_t{0};
    units[{person, label}].push_back(row);
  }
  std::vector<bool> for_test(dataset.size());
  for (const auto& [key, rows] : units) {
    const auto count = static_cast<size_t>(std::lround(test_fraction * static_cast<double>(rows.size())));
    for (size_t i = rows.size() - count; i < rows.size(); ++i) for_test[rows[i]] = true;
  }
  std::vector<uint32_t> train;
  std::vector<uint32_t> test;
  for (uint32_t row = 0; row < dataset.size(); ++row) (for_test[row] ? test : train).push_back(row);
  if (train.empty() || test.empty()) {
    throw input_error("{}: {} rows cannot be cut into training and test rows (test fraction {})",
                      dataset.name, dataset.size(), test_fraction);
  }
  return {subset(dataset, train), subset(dataset, test)};
}

}  // namespace bitfed
