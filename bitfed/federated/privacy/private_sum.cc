#include "bitfed/federated/privacy/private_sum.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "bitfed/base/error.h"
#include "bitfed/federated/privacy/discrete_gaussian.h"

namespace bitfed {
namespace {

constexpr double kMostKinds = 3;

// Norms are computed in floating point: far more than their rounding.
constexpr double kSlack = 1 + 1e-9;

double one_of(const UpdateGrid& grid, SumKind kind) {
  return kind == SumKind::kVote ? 1 : std::ldexp(1, static_cast<int>(grid.bits));
}

size_t count_of(const SumParts& parts, SumKind kind) {
  size_t count = 0;
  for (const SumPart& part : parts) count += part.kind == kind ? part.count : 0;
  return count;
}

}  // namespace

PrivateSum::PrivateSum(const DifferentialPrivacy& privacy, const UpdateGrid& grid, const SumParts& parts)
    : grid_(grid), parts_(parts) {
  for (const SumKind kind : {SumKind::kVote, SumKind::kChange, SumKind::kPrecise}) {
    const size_t count = count_of(parts, kind);
    if (count == 0) continue;
    const double length = kind == SumKind::kVote     ? std::sqrt(static_cast<double>(count))
                          : kind == SumKind::kChange ? privacy.clip
                                                     : privacy.statistics_clip;
    groups_.push_back({.kind = kind, .bound = length * one_of(grid, kind)});
  }
  // The variances of the clients' shares add up. A sum of discrete Gaussians is not quite one: for n shares
  // of a standard deviation s, its probabilities differ from one's by a factor within e^±t with t <= 10 (n -
  // 1) e^(-pi^2 s^2) (Kairouz, Liu, Steinke, "The distributed discrete Gaussian mechanism for federated
  // learning with secure aggregation", 2021). From kMinSigma on t is below n e^-155.
  const double kinds = static_cast<double>(groups_.size());
  const double multiplier =
      privacy.release.noise_multiplier * std::sqrt(kinds / std::max(privacy.noise_clients, 1u));
  for (Group& group : groups_) {
    const double sigma = std::ceil(multiplier * group.bound * kSlack);
    const auto most = static_cast<double>(DiscreteGaussian::kMaxSigma);
    if (!(sigma >= ReleaseCost::kMinSigma && sigma <= most)) {
      throw input_error(
          "privacy.update_grid: found noise of {} steps of the grid, expected {} to {}: {} bits", sigma,
          ReleaseCost::kMinSigma, most, sigma > most ? "fewer" : "more");
    }
    group.sigma = static_cast<uint64_t>(sigma);
  }
}

UpdateGrid PrivateSum::with_room(UpdateGrid grid, const DifferentialPrivacy& privacy) {
  if (privacy.noise_clients > 0)
    grid.noise = privacy.release.noise_multiplier * std::sqrt(kMostKinds / privacy.noise_clients);
  return grid;
}

SumParts PrivateSum::on_grid(SumParts parts) {
  for (SumPart& part : parts) {
    if (part.kind == SumKind::kPrecise) part.kind = SumKind::kChange;
  }
  return parts;
}

const PrivateSum::Group& PrivateSum::group_of(SumKind kind) const {
  const auto found =
      std::find_if(groups_.begin(), groups_.end(), [&](const Group& group) { return group.kind == kind; });
  assert(found != groups_.end());
  return *found;
}

void PrivateSum::clip(ClientUpdate* update) const {
  assert(update->parts == parts_);
  for (const Group& group : groups_) {
    if (group.kind == SumKind::kVote) continue;
    const double one = one_of(grid_, group.kind);
    const auto each = [&](const auto& action) {
      double* next = update->values.data();
      for (const SumPart& part : parts_) {
        for (size_t i = 0; i < part.count; ++i, ++next) {
          if (part.kind == group.kind) action(next);
        }
      }
    };
    double square = 0;
    each([&](const double* value) { square += *value * *value; });
    const double norm = std::sqrt(square) * one;
    const double factor = norm > group.bound ? group.bound / norm : 1;
    each([&](double* value) { *value = std::trunc(*value * factor * one) / one; });
  }
  update->parts = on_grid(parts_);
}

void PrivateSum::check(const ModularVector& update, std::string_view source) const {
  for (const Group& group : groups_) {
    double square = 0;
    size_t next = 0;
    size_t field = 0;
    for (const SumPart& part : parts_) {
      const uint32_t bits = update.fields[field++].bits;
      for (size_t i = 0; i < part.count; ++i) {
        const auto value = static_cast<double>(from_modular(update.values[next++], bits));
        if (part.kind == group.kind) square += value * value;
      }
    }
    if (!(std::sqrt(square) <= group.bound * kSlack)) {
      throw input_error("{}: found an update of norm {}, expected at most {} (privacy.clip)", source,
                        std::sqrt(square) / one_of(grid_, group.kind),
                        group.bound / one_of(grid_, group.kind));
    }
  }
}

std::vector<int64_t> PrivateSum::noise(const RandomWords& words) const {
  std::vector<int64_t> result;
  for (const SumPart& part : parts_) {
    DiscreteGaussian gaussian(group_of(part.kind).sigma, words);
    for (size_t i = 0; i < part.count; ++i) result.push_back(gaussian.draw());
  }
  return result;
}

void PrivateSum::add_noise(const RandomWords& words, ModularVector* update) const {
  const std::vector<int64_t> share = noise(words);
  size_t next = 0;
  size_t field = 0;
  for (const SumPart& part : parts_) {
    const uint32_t bits = update->fields[field++].bits;
    for (size_t i = 0; i < part.count; ++i, ++next)
      update->values[next] = to_modular(from_modular(update->values[next], bits) + share[next], bits);
  }
}

UpdateMean PrivateSum::mean(const ModularVector& sum, const std::vector<int64_t>& noise,
                            uint32_t clients) const {
  UpdateMean mean{.values = {}, .weight = clients, .clients = clients, .is_noised = true};
  mean.values.reserve(sum.values.size());
  size_t field = 0;
  for (const SumPart& part : parts_) {
    const uint32_t bits = sum.fields[field++].bits;
    const double one = one_of(grid_, part.kind);
    for (size_t i = 0; i < part.count; ++i) {
      const size_t next = mean.values.size();
      const int64_t total = from_modular(sum.values[next], bits) + (noise.empty() ? 0 : noise[next]);
      mean.values.push_back(static_cast<double>(total) / one / clients);
    }
  }
  return mean;
}

}  // namespace bitfed
