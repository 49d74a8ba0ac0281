#include "bitfed/data/catalog/split_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "bitfed/base/error.h"
#include "bitfed/base/hash/random.h"

namespace bitfed {
namespace {

constexpr double kMinFraction = 0.01;
constexpr double kMaxFraction = 0.99;

using Unit = std::pair<uint32_t, uint16_t>;  // a person, and a class where classes are split by themselves

std::map<Unit, std::vector<uint32_t>> rows_by_unit(const Dataset& dataset, bool by_class) {
  std::map<Unit, std::vector<uint32_t>> units;
  for (uint32_t row = 0; row < dataset.size(); ++row) {
    const uint32_t person = dataset.groups.empty() ? 0 : dataset.groups[row];
    units[{person, by_class ? dataset.labels[row] : uint16_t{0}}].push_back(row);
  }
  return units;
}

// Never all rows: at least one is for training.
size_t test_count(size_t rows, double test_fraction) {
  const auto rounded = static_cast<size_t>(std::lround(test_fraction * static_cast<double>(rows)));
  return std::min(rounded, rows - 1);
}

}  // namespace

SplitSpec read_split(const Config& data, const SplitSpec& fallback) {
  SplitSpec spec;
  const std::vector<std::string> kinds = {"time", "time-per-class", "stratified", "random"};
  spec.kind = data.choice("split", fallback.kind, kinds);
  spec.test_fraction = data.number("test_fraction", fallback.test_fraction, kMinFraction, kMaxFraction);
  return spec;
}

DataSplit split_table(const Dataset& dataset, const SplitSpec& spec, uint64_t seed) {
  const bool drawn = spec.kind == "stratified" || spec.kind == "random";
  const bool by_class = spec.kind == "time-per-class" || spec.kind == "stratified";
  std::vector<bool> for_test(dataset.size());
  auto units = rows_by_unit(dataset, by_class);
  for (auto& [unit, order] : units) {
    // A stream per unit: the draw for one person does not depend on who else is in the table.
    if (drawn) RandomStream({seed, "split", unit.second, unit.first}).shuffle(std::span(order));
    const size_t count = test_count(order.size(), spec.test_fraction);
    for (size_t i = order.size() - count; i < order.size(); ++i) for_test[order[i]] = true;
  }
  std::vector<uint32_t> train;
  std::vector<uint32_t> test;
  for (uint32_t row = 0; row < dataset.size(); ++row) (for_test[row] ? test : train).push_back(row);
  if (test.empty()) {
    throw input_error(
        "{}: found no test row ({} rows, test_fraction {:g}, every person keeps a training row), "
        "expected more rows or a larger test_fraction",
        dataset.name, dataset.size(), spec.test_fraction);
  }
  DataSplit split{subset(dataset, train), subset(dataset, test), {}};
  split.train.dropped_rows = dataset.dropped_rows;
  if (drawn && dataset.is_table()) {
    split.notes.emplace_back("test rows were drawn at random (split = \"" + spec.kind +
                             "\"): neighbouring windows of one recording may be on both sides");
  }
  return split;
}

}  // namespace bitfed
