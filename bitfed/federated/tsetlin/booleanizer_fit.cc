#include "bitfed/federated/tsetlin/booleanizer_fit.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "bitfed/base/error.h"
#include "bitfed/federated/expect_tensors.h"
#include "bitfed/model/booleanizer_json.h"
#include "bitfed/model/json_fields.h"

namespace bitfed {
namespace {

// A client sends a quantile for so many samples at most; with fewer its quantiles are coarsened.
constexpr size_t kSamplesPerBin = 3;

bool unfitted(const SpecialistSpec& spec) {
  return spec.booleanizer.kind == "quantile" && spec.booleanizer.cuts.empty();
}

// The averaged quantiles of one column, without duplicates.
std::vector<float> distinct(const std::vector<double>& cuts) {
  std::vector<float> result;
  for (const double cut : cuts) {
    const auto value = static_cast<float>(cut);
    if (result.empty() || value > result.back()) result.push_back(value);
  }
  return result;
}

// Quantiles of few samples, without any one of them: the sorted values are cut into cells of kSamplesPerBin
// or more, and the quantiles are read off the straight lines between the cells' means.
void add_coarse_quantiles(const std::vector<float>& sorted, size_t bins, std::vector<float>* quantiles) {
  const size_t cells = std::max<size_t>(sorted.size() / kSamplesPerBin, 1);
  std::vector<double> means;
  for (size_t c = 0; c < cells; ++c) {
    const size_t first = c * sorted.size() / cells;
    const size_t last = (c + 1) * sorted.size() / cells;
    double sum = 0;
    for (size_t i = first; i < last; ++i) sum += sorted[i];
    means.push_back(sum / static_cast<double>(last - first));
  }
  for (size_t k = 1; k < bins; ++k) {
    // Cell c's mean stands at c + 1/2 of `cells`.
    const double place = static_cast<double>(k * cells) / static_cast<double>(bins) - 0.5;
    const double within = std::clamp(place, 0.0, static_cast<double>(cells - 1));
    const auto below = static_cast<size_t>(within);
    const double above = means[std::min(below + 1, cells - 1)];
    const double part = within - static_cast<double>(below);
    quantiles->push_back(static_cast<float>(means[below] + part * (above - means[below])));
  }
}

}  // namespace

BooleanizerFit::BooleanizerFit(const TsetlinRecipe& recipe) : columns_(recipe.prototype.columns.size()) {
  for (const SpecialistSpec& spec : recipe.specialists) {
    if (!unfitted(spec)) continue;
    needed_ = true;
    bins_ = static_cast<uint64_t>(spec.booleanizer.bins);
  }
  combining_.max_samples = recipe.max_samples;
  if (recipe.max_votes > 0) combining_.kind = Combining::Kind::kMedian;
  combining_ = preparation_combining(combining_);
}

State BooleanizerFit::broadcast() const {
  State state;
  state.add_scalar<uint32_t>("quantile_bins", static_cast<uint32_t>(bins_));
  return state;
}

void BooleanizerFit::accept(uint32_t client, const State& message) {
  Quantiles quantiles;
  quantiles.samples = message.scalar<uint32_t>("samples");
  quantiles.values = message.values<float>("quantiles", {columns_, bins_ - 1});
  expect_tensors(message, 2);
  if (quantiles.samples == 0) throw input_error("tensor 'samples': found 0, expected at least 1");
  for (size_t i = 0; i < quantiles.values.size(); ++i) {
    const bool first = i % (bins_ - 1) == 0;
    if (!std::isfinite(quantiles.values[i]) || (!first && quantiles.values[i] < quantiles.values[i - 1])) {
      throw input_error("tensor 'quantiles': expected finite ascending values in each column");
    }
  }
  received_[client] = std::move(quantiles);
}

// Of each quantile of each column; quantiles that ascend at every client ascend here. Sums are in double
// precision and in the order of the clients: the same bits whatever the order of arrival.
std::vector<double> BooleanizerFit::combined() const {
  std::vector<double> sums(columns_ * (bins_ - 1));
  if (combining_.kind != Combining::Kind::kMean) {
    std::vector<float> values;
    for (size_t i = 0; i < sums.size(); ++i) {
      values.clear();
      for (const auto& [client, quantiles] : received_) values.push_back(quantiles.values[i]);
      sums[i] = middle_of(combining_, &values);
    }
    return sums;
  }
  double total = 0;
  for (const auto& [client, quantiles] : received_) {
    total += quantiles.samples;
    for (size_t i = 0; i < sums.size(); ++i)
      sums[i] += quantiles.samples * static_cast<double>(quantiles.values[i]);
  }
  for (double& sum : sums) sum /= total;
  return sums;
}

void BooleanizerFit::finish(TsetlinRecipe* recipe) {
  const std::vector<double> quantiles = combined();
  std::vector<std::vector<float>> cuts;
  for (size_t column = 0; column < columns_; ++column) {
    const auto first = quantiles.begin() + static_cast<std::ptrdiff_t>(column * (bins_ - 1));
    cuts.push_back(distinct({first, first + static_cast<std::ptrdiff_t>(bins_ - 1)}));
  }
  for (SpecialistSpec& spec : recipe->specialists) {
    if (unfitted(spec)) spec.booleanizer.cuts = cuts;
  }
  needed_ = false;
  received_.clear();
}

bool asks_for_quantiles(const State& broadcast) {
  return broadcast.has("quantile_bins");
}

// Quantile k of a column is the sorted value at index k * n / bins.
State quantile_message(const State& broadcast, const Dataset& samples) {
  const auto bins = broadcast.scalar<uint32_t>("quantile_bins");
  if (bins < 2 || bins > 4096)
    throw input_error("tensor 'quantile_bins': found {}, expected 2 to 4096", bins);
  std::vector<float> quantiles;
  std::vector<float> column(samples.size());
  for (size_t c = 0; c < samples.columns.size(); ++c) {
    for (size_t i = 0; i < column.size(); ++i) column[i] = samples.row(i)[c];
    std::sort(column.begin(), column.end());
    if (column.size() < kSamplesPerBin * bins) {
      add_coarse_quantiles(column, bins, &quantiles);
      continue;
    }
    for (size_t k = 1; k < bins; ++k)
      quantiles.push_back(column[std::min(column.size() - 1, k * column.size() / bins)]);
  }
  State message;
  message.add_scalar<uint32_t>("samples", static_cast<uint32_t>(samples.size()));
  message.add("quantiles", {samples.columns.size(), bins - 1}, quantiles);
  return message;
}

void add_booleanizers(const TsetlinRecipe& recipe, State* broadcast) {
  nlohmann::json fitted = nlohmann::json::array();
  bool any = false;
  for (const SpecialistSpec& spec : recipe.specialists) {
    any |= !spec.booleanizer.cuts.empty();
    fitted.push_back(booleanizer_to_json(spec.booleanizer));
  }
  if (any) broadcast->metadata["booleanizers"] = fitted.dump();
}

void take_booleanizers(const State& broadcast, TsetlinRecipe* recipe) {
  const auto found = broadcast.metadata.find("booleanizers");
  if (found == broadcast.metadata.end()) return;
  const nlohmann::json fitted = parse_json(found->second, "booleanizers");
  if (!fitted.is_array() || fitted.size() != recipe->specialists.size()) {
    throw input_error("metadata 'booleanizers': expected an array of {}", recipe->specialists.size());
  }
  for (size_t i = 0; i < fitted.size(); ++i) {
    recipe->specialists[i].booleanizer = booleanizer_from_json(fitted[i], "booleanizers");
  }
}

}  // namespace bitfed
