#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "bitfed/data/dataset.h"
#include "bitfed/model/state.h"
#include "bitfed/zoo/mlp_model.h"

namespace bitfed {

// Scaling to [-1, 1], fitted federatedly: before the first round every client sends two numbers for each
// column, never a row.
enum class RangeKind {
  kExtremes,   // the smallest and the largest value, as the Fed-Bin-MLP paper scales
  kQuantiles,  // the values that 5 % lie below and above: one wild reading does not flatten a column
};

State ask_for_ranges(RangeKind kind);
bool asks_for_ranges(const State& broadcast);
State ranges_message(const State& broadcast, const Dataset& samples);

// At the server: the ranges of all clients together, in any order.
class ColumnRanges {
 public:
  ColumnRanges(RangeKind kind, size_t columns);

  // An input_error for what is not a range of finite numbers for every column.
  void accept(uint32_t client, const State& message);

  // From the least to the largest of all extremes, or between the means of the quantiles, weighted by
  // samples: the middle of a column's range becomes 0, its ends -1 and 1; a constant column 0 everywhere.
  // What lies beyond the quantiles is clipped to ±2.
  ColumnScaling scaling() const;

 private:
  struct Ranges {
    std::vector<float> ends;  // all columns' lower ones, then their upper ones
    uint32_t samples = 0;
  };
  std::vector<double> extremes() const;
  std::vector<double> mean_quantiles() const;

  RangeKind kind_;
  size_t columns_;
  std::map<uint32_t, Ranges> received_;  // by client: sums are taken in their order
};

}  // namespace bitfed
