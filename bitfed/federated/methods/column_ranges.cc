#include "bitfed/federated/methods/column_ranges.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bitfed/base/error.h"

namespace bitfed {

State ask_for_ranges() {
  State state;
  state.metadata["ask"] = "ranges";
  return state;
}

bool asks_for_ranges(const State& broadcast) {
  return broadcast.metadata.contains("ask") && broadcast.text("ask") == "ranges";
}

State ranges_message(const Dataset& samples) {
  const size_t columns = samples.columns.size();
  std::vector<float> ranges(samples.row(0).begin(), samples.row(0).end());
  ranges.insert(ranges.end(), samples.row(0).begin(), samples.row(0).end());
  for (size_t i = 1; i < samples.size(); ++i) {
    const auto row = samples.row(i);
    for (size_t c = 0; c < columns; ++c) {
      ranges[c] = std::min(ranges[c], row[c]);
      ranges[columns + c] = std::max(ranges[columns + c], row[c]);
    }
  }
  State message;
  message.add("ranges", {2, columns}, ranges);
  return message;
}

ColumnRanges::ColumnRanges(size_t columns)
    : least_(columns, std::numeric_limits<float>::max()),
      most_(columns, std::numeric_limits<float>::lowest()) {}

void ColumnRanges::accept(const State& message) {
  const size_t columns = least_.size();
  const std::vector<float> ranges = message.values<float>("ranges", {2, columns});
  for (size_t c = 0; c < columns; ++c) {
    if (!std::isfinite(ranges[c]) || !std::isfinite(ranges[columns + c]) || ranges[c] > ranges[columns + c])
      throw input_error("tensor 'ranges': column {}: expected two finite numbers that ascend", c + 1);
  }
  for (size_t c = 0; c < columns; ++c) {
    least_[c] = std::min(least_[c], ranges[c]);
    most_[c] = std::max(most_[c], ranges[columns + c]);
  }
}

ColumnScaling ColumnRanges::scaling() const {
  ColumnScaling scaling;
  for (size_t c = 0; c < least_.size(); ++c) {
    const double least = least_[c];
    const double most = most_[c];
    const auto factor = static_cast<float>(2 / (most - least));
    scaling.offset.push_back(static_cast<float>((least + most) / 2));
    // The difference may be 0, or too small for its inverse to be a float.
    scaling.factor.push_back(most > least && std::isfinite(factor) ? factor : 0.0f);
  }
  return scaling;
}

}  // namespace bitfed
