#include "bitfed/federated/arithmetic/client_mean.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "bitfed/base/pool_or_caller.h"

namespace bitfed {
namespace {

// The mean of `values` without `trimmed` values at each end; sorts `values`.
float mean_of_middle(std::vector<float>* values, size_t off) {
  std::sort(values->begin(), values->end());
  const auto first = values->begin() + static_cast<std::ptrdiff_t>(off);
  const auto last = values->end() - static_cast<std::ptrdiff_t>(off);
  return static_cast<float>(std::accumulate(first, last, 0.0) / static_cast<double>(last - first));
}

}  // namespace

float middle_of(const Combining& combining, std::vector<float>* values) {
  assert(combining.kind == Combining::Kind::kMedian || combining.kind == Combining::Kind::kTrimmedMean);
  const size_t off = combining.kind == Combining::Kind::kMedian
                         ? (values->size() - 1) / 2
                         : static_cast<size_t>(combining.trim * static_cast<double>(values->size()));
  return mean_of_middle(values, off);
}

std::vector<ValueRange> ranges_of(const TensorViews& values) {
  std::vector<ValueRange> ranges;
  for (size_t t = 0; t < values.size(); ++t) {
    for (size_t begin = 0; begin < values[t].size(); begin += ExactMean::kGrain)
      ranges.push_back({t, begin, std::min(values[t].size(), begin + ExactMean::kGrain)});
  }
  return ranges;
}

ThreadPool* pool_for(const TensorViews& values, size_t clients, ThreadPool* pool) {
  size_t elements = 0;
  for (const std::span<const float> view : values) elements += view.size();
  return clients * elements > ExactMean::kGrain ? pool : nullptr;
}

Combining preparation_combining(const Combining& combining) {
  Combining result = combining;
  const bool bounded_mean = combining.kind == Combining::Kind::kMean && combining.is_bounded();
  if (bounded_mean || combining.kind == Combining::Kind::kGeometricMedian)
    result.kind = Combining::Kind::kMedian;
  return result;
}

Combining read_combining(const Config& recipe) {
  const Config federation = recipe.section("federation");
  const std::vector<std::string> kinds = {"mean", "median", "trimmed-mean",
                                          "geometric-median"};  // in the order of Combining::Kind
  const std::string kind = federation.choice("combine", kinds[0], kinds);
  Combining combining;
  combining.kind = static_cast<Combining::Kind>(std::find(kinds.begin(), kinds.end(), kind) - kinds.begin());
  if (combining.kind == Combining::Kind::kTrimmedMean)
    combining.trim = federation.number("trim", combining.trim, 0, 0.499);
  if (federation.has("norm_bound")) combining.norm_bound = federation.number("norm_bound", 1, 1e-9, 1e9);
  if (const auto key = federation.name_in_use("max_samples", "most_samples"); federation.has(key))
    combining.max_samples = static_cast<uint32_t>(federation.integer(key, 1, 1));
  return combining;
}

// The sum has a fixed order, in double precision: the same on every machine.
void ClientMean::clip(const TensorValues& start, TensorValues* values) {
  double square = 0;
  for (size_t t = 0; t < start.size(); ++t) {
    if (!learned_[t]) continue;
    for (size_t i = 0; i < start[t].size(); ++i) {
      const double change = static_cast<double>((*values)[t][i]) - start[t][i];
      square += change * change;
    }
  }
  const double norm = std::sqrt(square);
  norms_.push_back(norm);
  if (norm <= combining_.norm_bound) return;
  const double factor = combining_.norm_bound / norm;
  for (size_t t = 0; t < start.size(); ++t) {
    for (size_t i = 0; i < start[t].size(); ++i) {
      const double change = static_cast<double>((*values)[t][i]) - start[t][i];
      (*values)[t][i] = static_cast<float>(start[t][i] + factor * change);
    }
  }
}

void ClientMean::add(uint32_t client, TensorValues values, uint32_t samples, const TensorValues& start) {
  assert(values.size() == start.size() && values.size() == learned_.size() && samples > 0);
  if (combining_.norm_bound > 0) clip(start, &values);
  if (combining_.kind == Combining::Kind::kMean) {
    const Client one{client, {values.begin(), values.end()}, samples};
    add_to_means({&one, 1});
  } else {
    all_[client] = std::move(values);
    count(samples);
  }
}

void ClientMean::add_all(std::span<const Client> clients, const TensorValues& start) {
  if (combining_.kind == Combining::Kind::kMean && combining_.norm_bound == 0) return add_to_means(clients);
  for (const Client& client : clients) {
    TensorValues copies;
    for (const std::span<const float> view : client.values) copies.emplace_back(view.begin(), view.end());
    add(client.client, std::move(copies), client.samples, start);
  }
}

// Threads share all tensors together, in ranges: the sums, four times as large as one client's values, pass
// through memory once for all clients.
void ClientMean::add_to_means(std::span<const Client> clients) {
  means_.resize(learned_.size());
  std::vector<std::vector<ExactMean::Weighted>> vectors(means_.size());
  for (size_t t = 0; t < means_.size(); ++t) {
    for (const Client& client : clients)
      vectors[t].push_back({client.values[t], std::min(client.samples, combining_.max_samples)});
    means_[t].begin_add(vectors[t]);  // the first refuses too many samples, before any tensor is changed
  }
  const std::vector<ValueRange> ranges = ranges_of(clients[0].values);
  for_each(pool_for(clients[0].values, clients.size(), pool_), ranges.size(), [&](size_t i) {
    const auto& [tensor, begin, end] = ranges[i];
    means_[tensor].add_range(vectors[tensor], begin, end);
  });
  for (const Client& client : clients) count(client.samples);
}

void ClientMean::count(uint32_t samples) {
  ++clients_;
  samples_ += std::min(samples, combining_.max_samples);
}

void ClientMean::set(TensorValues mean, uint64_t samples, size_t clients) {
  given_ = std::move(mean);
  samples_ = samples;
  clients_ = clients;
}

State ClientMean::take_part() {
  assert(adds_up());
  State part;
  part.add_scalar<uint64_t>("clients", clients_);
  part.add_scalar<uint64_t>("samples", samples_);
  part.add("norms", {norms_.size()}, norms_);
  for (size_t t = 0; t < means_.size(); ++t) {
    const std::span<const uint8_t> sums = means_[t].sums();
    part.add({fmt::format("sums.{}", t), Dtype::kU8, {sums.size()}, Bytes(sums.begin(), sums.end())});
  }
  ThreadPool* const pool = pool_;
  *this = ClientMean(combining_, std::move(learned_));
  pool_ = pool;
  return part;
}

void ClientMean::add_part(const State& part, const TensorValues& start) {
  assert(adds_up() && start.size() == learned_.size());
  const auto clients = part.scalar<uint64_t>("clients");
  if (clients == 0) return;
  const auto samples = part.scalar<uint64_t>("samples");
  const auto norms = part.values<double>("norms", {State::kAny});
  means_.resize(start.size());
  for (size_t t = 0; t < start.size(); ++t) {
    const uint64_t bytes = start[t].size() * ExactMean::kSumBytes;
    means_[t].add_sums(part.expect(fmt::format("sums.{}", t), Dtype::kU8, {bytes}).bytes, samples);
  }
  norms_.insert(norms_.end(), norms.begin(), norms.end());
  clients_ += clients;
  samples_ += samples;
}

TensorValues ClientMean::middle() const {
  const Combining combining = preparation_combining(combining_);
  TensorValues result = all_.begin()->second;
  std::vector<float> values(all_.size());
  for (size_t t = 0; t < result.size(); ++t) {
    for (size_t i = 0; i < result[t].size(); ++i) {
      size_t next = 0;
      for (const auto& [client, tensors] : all_) values[next++] = tensors[t][i];
      result[t][i] = middle_of(combining, &values);
    }
  }
  if (combining_.kind != Combining::Kind::kGeometricMedian) return result;
  std::vector<const TensorValues*> models;
  for (const auto& [client, tensors] : all_) models.push_back(&tensors);
  return geometric_median(models, learned_, result);
}

TensorValues ClientMean::take() {
  assert(clients_ > 0);
  TensorValues result;
  if (given_) {
    result = *std::move(given_);
  } else if (combining_.kind == Combining::Kind::kMean) {
    for (const ExactMean& mean : means_) result.push_back(mean.mean(pool_));
  } else {
    result = middle();
  }
  std::vector<double> norms = std::move(norms_);
  std::sort(norms.begin(), norms.end());
  ThreadPool* pool = pool_;
  *this = ClientMean(combining_, std::move(learned_));
  pool_ = pool;
  last_norms_ = std::move(norms);
  return result;
}

std::vector<std::string> ClientMean::notes() const {
  if (last_norms_.empty()) return {};
  const auto beyond =
      last_norms_.end() - std::upper_bound(last_norms_.begin(), last_norms_.end(), combining_.norm_bound);
  return {fmt::format(
      "norm bound {}: in the last round {} of {} updates were clipped; their norms were {:.4g} to "
      "{:.4g}, median {:.4g}",
      combining_.norm_bound, beyond, last_norms_.size(), last_norms_.front(), last_norms_.back(),
      last_norms_[last_norms_.size() / 2])};
}

}  // namespace bitfed
