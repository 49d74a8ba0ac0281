#include "bitfed/federated/mlp/column_ranges.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "bitfed/base/error.h"
#include "bitfed/federated/expect_tensors.h"

namespace bitfed {
namespace {

constexpr const char* kExtremes = "extremes";
constexpr const char* kQuantiles = "quantiles";
constexpr size_t kOneIn = 20;  // one in 20 samples lies beyond each quantile: 5 %
constexpr float kBeyond = 2;   // scaled values are clipped to ± this

}  // namespace

State ask_for_ranges(RangeKind kind) {
  State state;
  state.metadata["ranges"] = kind == RangeKind::kExtremes ? kExtremes : kQuantiles;
  return state;
}

bool asks_for_ranges(const State& broadcast) {
  return broadcast.metadata.contains("ranges");
}

// The k-th smallest and the k-th largest value of each column: k = 0 for extremes, 5 % of the samples for
// quantiles.
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
    const auto value_at = [&](size_t rank) {
      const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank);
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

ClientUpdate ranges_update(const State& message, size_t columns) {
  const auto ends = message.values<float>("ranges", {2, columns});
  return {ColumnRanges::sum_parts(columns), {ends.begin(), ends.end()}, message.scalar<uint32_t>("samples")};
}

ColumnRanges::ColumnRanges(RangeKind kind, size_t columns, const Combining& combining)
    : kind_(kind), columns_(columns), combining_(preparation_combining(combining)) {}

void ColumnRanges::accept(uint32_t client, const State& message) {
  Ranges ranges{message.values<float>("ranges", {2, columns_}), message.scalar<uint32_t>("samples")};
  if (ranges.samples == 0) throw input_error("tensor 'samples': found 0, expected at least 1");
  expect_tensors(message, 2);
  for (size_t c = 0; c < columns_; ++c) {
    const float min = ranges.ends[c];
    const float max = ranges.ends[columns_ + c];
    if (!std::isfinite(min) || !std::isfinite(max) || min > max)
      throw input_error("tensor 'ranges': column {}: expected two finite ascending values", c + 1);
  }
  received_[client] = std::move(ranges);
}

std::vector<double> ColumnRanges::extremes() const {
  std::vector<double> ends(2 * columns_);
  for (size_t c = 0; c < columns_; ++c) {
    ends[c] = std::numeric_limits<double>::max();
    ends[columns_ + c] = std::numeric_limits<double>::lowest();
    for (const auto& [client, ranges] : received_) {
      ends[c] = std::min<double>(ends[c], ranges.ends[c]);
      ends[columns_ + c] = std::max<double>(ends[columns_ + c], ranges.ends[columns_ + c]);
    }
  }
  return ends;
}

std::vector<double> ColumnRanges::mean_quantiles() const {
  std::vector<double> sums(2 * columns_);
  double samples = 0;
  for (const auto& [client, ranges] : received_) {
    samples += ranges.samples;
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(ranges.samples) * ranges.ends[i];
  }
  for (double& sum : sums) sum = static_cast<float>(sum / samples);  // rounded as the clients' values are
  return sums;
}

// Lower ends stay below upper ones: sorted, every client's lower end is at most the upper end of the same
// rank.
std::vector<double> ColumnRanges::middle() const {
  std::vector<double> ends(2 * columns_);
  std::vector<float> values;
  for (size_t i = 0; i < ends.size(); ++i) {
    values.clear();
    for (const auto& [client, ranges] : received_) values.push_back(ranges.ends[i]);
    ends[i] = middle_of(combining_, &values);
  }
  return ends;
}

// Rounded as the clients' values are.
void ColumnRanges::accept_mean(const UpdateMean& mean) {
  given_.emplace();
  for (const double value : mean.values) given_->push_back(static_cast<float>(value));
}

std::vector<double> ColumnRanges::ends() const {
  if (given_) return *given_;
  if (combining_.kind != Combining::Kind::kMean) return middle();
  return kind_ == RangeKind::kExtremes ? extremes() : mean_quantiles();
}

ColumnScaling ColumnRanges::scaling() const {
  const std::vector<double> ends = this->ends();
  ColumnScaling scaling;
  scaling.limit = kind_ == RangeKind::kExtremes ? 0 : kBeyond;
  for (size_t c = 0; c < columns_; ++c) {
    const double min = ends[c];
    const double max = ends[columns_ + c];
    const auto factor = static_cast<float>(2 / (max - min));
    scaling.offset.push_back(static_cast<float>((min + max) / 2));
    // The difference may be 0, or too small for its inverse to be a float.
    scaling.factor.push_back(max > min && std::isfinite(factor) ? factor : 0.0f);
  }
  return scaling;
}

}  // namespace bitfed
