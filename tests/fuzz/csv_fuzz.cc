#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "bitfed/base/error.h"
#include "bitfed/data/catalog/split_table.h"
#include "bitfed/data/formats/csv.h"

namespace {

void check(const bitfed::Dataset& dataset) {
  if (dataset.values.size() != dataset.size() * dataset.columns.size()) __builtin_trap();
  for (const uint16_t label : dataset.labels) {
    if (label >= dataset.class_count()) __builtin_trap();
  }
  for (const uint32_t group : dataset.groups) {
    if (group >= dataset.group_names.size()) __builtin_trap();
  }
  for (const float value : dataset.values) {
    if (!std::isfinite(value)) __builtin_trap();
  }
  for (const char* kind : {"time", "time-per-class", "stratified"}) {
    const bitfed::DataSplit split = bitfed::split_table(dataset, {kind, 0.6}, 1);
    if (split.train.size() + split.test.size() != dataset.size()) __builtin_trap();
    if (split.train.dropped_rows != dataset.dropped_rows) __builtin_trap();
    std::vector<bool> trains(dataset.group_names.size());
    for (const uint32_t group : split.train.groups) trains[group] = true;
    if (!std::all_of(trains.begin(), trains.end(), [](bool does) { return does; })) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const char* person = std::array{"", "p", "p,q"}[size % 3];
  try {
    check(bitfed::parse_csv(text, "fuzz", {.label = "l", .person = person, .ignore = {}}));
  } catch (const bitfed::Error& error) {
    if (std::strchr(error.what(), '\n') != nullptr) __builtin_trap();  // a message is one line
  }
  return 0;
}
