#include "bitfed/federated/methods/column_ranges.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

constexpr const char* kExtremes = "extremes";
constexpr const char* kQuantiles = "quantiles";
constexpr size_t kOneIn = 20;  // samples on either side of the quantiles
constexpr float kBeyond = 2;   // as far as what lies beyond them counts

}  // namespace

State ask_for_ranges(RangeKind kind) {
  State state;
  state.metadata["ranges"] = kind == RangeKind::kExtremes ? kExtremes : kQuantiles;
  return state;
}

bool asks_for_ranges(const State& broadcast) {
  return broadcast.metadata.contains("ranges");
}

State ranges_message(const State& broadcast, const Dataset& samples) {
  const std::string& kind = broadcast.text("ranges");
  if (kind != kExtremes && kind != kQuantiles)
    throw input_error("metadata 'ranges': found '{}', expected {} or {}", kind, kExtremes, kQuantiles);
  const size_t outside = kind == kExtremes ? 0 : samples.size() / kOneIn;
  const size_t columns = samples.columns.size();
  std::vector<float> ranges(2 * columns);
  std::vector<float> values(samples.size());
  for (size_t column = 0; column < columns; ++column) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = samples.row(i)[column];
    const auto value_at = [&](size_t place) {
      const auto at = values.begin() + static_cast<std::ptrdiff_t>(place);
      std::nth_element(values.begin(), at, values.end());
      return *at;
    };
    ranges[column] = value_at(outside);
    ranges[columns + column] = value_at(values.size() - 1 - outside);
  }
  State message;
  message.add("ranges", {2, columns}, ranges);
  message.add_scalar<uint32_t>("samples", static_cast<uint32_t>(samples.size()));
  return message;
}

ColumnRanges::ColumnRanges(RangeKind kind, size_t columns) : kind_(kind), columns_(columns) {}

void ColumnRanges::accept(const State& message) {
  const std::vector<float> ranges = message.values<float>("ranges", {2, columns_});
  const auto samples = message.scalar<uint32_t>("samples");
  if (samples == 0) throw input_error("tensor 'samples': found 0, expected at least 1");
  for (size_t c = 0; c < columns_; ++c) {
    if (!std::isfinite(ranges[c]) || !std::isfinite(ranges[columns_ + c]) || ranges[c] > ranges[columns_ + c])
      throw input_error("tensor 'ranges': column {}: expected two finite numbers that ascend", c + 1);
  }
  if (kind_ == RangeKind::kQuantiles) {
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (ExactMean::fits(std::span(&ranges[i], 1))) continue;
      throw input_error("tensor 'ranges': column {}: found a quantile beyond ±{}: bring it to another unit",
                        i % columns_ + 1, ExactMean::kLargest);
    }
    quantiles_.add(ranges, samples);
    return;
  }
  if (extremes_.empty()) extremes_ = ranges;
  for (size_t c = 0; c < columns_; ++c) {
    extremes_[c] = std::min(extremes_[c], ranges[c]);
    extremes_[columns_ + c] = std::max(extremes_[columns_ + c], ranges[columns_ + c]);
  }
}

ColumnScaling ColumnRanges::scaling() const {
  const std::vector<float> ends = kind_ == RangeKind::kExtremes ? extremes_ : quantiles_.mean();
  ColumnScaling scaling;
  scaling.limit = kind_ == RangeKind::kExtremes ? 0 : kBeyond;
  for (size_t c = 0; c < columns_; ++c) {
    const double least = ends[c];
    const double most = ends[columns_ + c];
    const auto factor = static_cast<float>(2 / (most - least));
    scaling.offset.push_back(static_cast<float>((least + most) / 2));
    // The difference may be 0, or too small for its inverse to be a float.
    scaling.factor.push_back(most > least && std::isfinite(factor) ? factor : 0.0f);
  }
  return scaling;
}

}  // namespace bitfed
