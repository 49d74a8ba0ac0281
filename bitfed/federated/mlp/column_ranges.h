#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "bitfed/data/dataset.h"
#include "bitfed/federated/arithmetic/client_mean.h"
#include "bitfed/federated/privacy/summed_update.h"
#include "bitfed/model/state.h"
#include "bitfed/zoo/mlp_model.h"

namespace bitfed {

// Federated fitting of the scaling to [-1, 1]: before the first round every client sends two values per
// column, never a row.
enum class RangeKind {
  kExtremes,   // the smallest and the largest value, as in the Fed-Bin-MLP paper
  kQuantiles,  // the 5 % and 95 % quantiles: robust against outliers
};

State ask_for_ranges(RangeKind kind);
bool asks_for_ranges(const State& broadcast);
State ranges_message(const State& broadcast, const Dataset& samples);
// What such a message of so many columns adds to a sum over clients.
ClientUpdate ranges_update(const State& message, size_t columns);

// At the server: combines the ranges of all clients, in any order of arrival.
class ColumnRanges {
 public:
  ColumnRanges(RangeKind kind, size_t columns, const Combining& combining = {});

  // An input_error unless there is a range of finite values for every column.
  void accept(uint32_t client, const State& message);

  // Instead: the mean of all clients' quantiles, see ServerHalf::accept_mean.
  static SumParts sum_parts(size_t columns) { return {{SumKind::kPrecise, 2 * columns}}; }
  void accept_mean(const UpdateMean& mean);

  // The range of a column is from the smallest to the largest extreme, or between the sample-weighted means
  // of the quantiles; where the recipe bounds its clients, between the medians or trimmed means of either.
  // Its middle becomes 0, its ends -1 and 1; a constant column becomes 0. With quantiles, scaled values are
  // clipped to ±2.
  ColumnScaling scaling() const;

 private:
  struct Ranges {
    std::vector<float> ends;  // lower ends of all columns, then upper ends
    uint32_t samples = 0;
  };
  std::vector<double> extremes() const;
  std::vector<double> mean_quantiles() const;
  std::vector<double> middle() const;
  std::vector<double> ends() const;

  RangeKind kind_;
  size_t columns_;
  Combining combining_;
  std::map<uint32_t, Ranges> received_;       // by client: sums are in this order
  std::optional<std::vector<double>> given_;  // the ends, from accept_mean
};

}  // namespace bitfed
