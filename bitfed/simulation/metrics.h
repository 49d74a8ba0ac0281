#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bitfed/run/summary.h"

namespace bitfed {

// A figure of a run as papers' tables give it.
struct Metric {
  std::string name;  // as a table's definition writes it
  std::string unit;
  int decimals = 2;
  bool lower_is_better = false;
  std::optional<double> (*value)(const RunSummary& summary) = nullptr;  // empty: the run has none
};

// The one list of metrics.
const std::vector<Metric>& metrics();

}  // namespace bitfed
