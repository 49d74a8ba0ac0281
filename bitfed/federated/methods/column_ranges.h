#pragma once

#include <vector>

#include "bitfed/data/dataset.h"
#include "bitfed/model/state.h"
#include "bitfed/nn/mlp_model.h"

namespace bitfed {

// Scaling to [-1, 1], fitted federatedly: before the first round every client sends the smallest and the
// largest value of each column, never a row.

State ask_for_ranges();
bool asks_for_ranges(const State& broadcast);
State ranges_message(const Dataset& samples);

// At the server: the ranges of all clients together, in any order.
class ColumnRanges {
 public:
  explicit ColumnRanges(size_t columns);

  // An input_error for what is not a range of finite numbers for every column.
  void accept(const State& message);

  // The middle of each column's range becomes 0, its ends -1 and 1; a constant column 0 everywhere.
  ColumnScaling scaling() const;

 private:
  std::vector<float> least_;
  std::vector<float> most_;
};

}  // namespace bitfed
