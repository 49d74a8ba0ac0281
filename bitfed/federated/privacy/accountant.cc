#include "bitfed/federated/privacy/accountant.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numbers>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

constexpr double kStepsPerUnit = 1000;
constexpr uint32_t kMaxNoiseSteps = 10000000;

// Small orders are best for large epsilons, where those between the integers count; large ones for small.
std::vector<double> make_orders() {
  std::vector<double> orders = {1.1, 1.2};
  for (int quarter = 5; quarter < 40; ++quarter) orders.push_back(quarter / 4.0);
  for (int order = 10; order <= 64; ++order) orders.push_back(order);
  for (int order = 72; order <= 256; order += 8) orders.push_back(order);
  for (int order = 320; order <= 1024; order += 64) orders.push_back(order);
  return orders;
}

const std::vector<double>& orders() {
  static const std::vector<double> kOrders = make_orders();
  return kOrders;
}

// log(e^a + e^b)
double log_add(double a, double b) {
  const double high = std::max(a, b);
  return std::isinf(high) ? high : high + std::log1p(std::exp(std::min(a, b) - high));
}

// The logarithm of the sum over k of C(order, k) (1 - q)^(order - k) q^k exp((k^2 - k) / (2 sigma^2)).
double log_moment(const SampledGaussian& release, uint32_t order) {
  const double variance = release.noise_multiplier * release.noise_multiplier;
  const double log_in = std::log(release.sampling);
  const double log_out = std::log1p(-release.sampling);
  double sum = -std::numeric_limits<double>::infinity();
  double choose = 0;  // the logarithm of C(order, k)
  for (uint32_t k = 0; k <= order; ++k) {
    const double moment = static_cast<double>(k) * (static_cast<double>(k) - 1) / (2 * variance);
    sum = log_add(sum, choose + k * log_in + (order - k) * log_out + moment);
    choose += std::log(static_cast<double>(order - k)) - std::log(static_cast<double>(k) + 1);
  }
  return sum;
}

// The same between the integers: of the integral of N(z; 0, sigma^2) (1 - q + q exp((2 z - 1) / (2
// sigma^2)))^order. The trapezoidal rule converges exponentially; the nearest pole is at a height of pi
// sigma^2.
double log_moment_between(const SampledGaussian& release, double order) {
  const double sigma = release.noise_multiplier;
  const double step = std::min(sigma, sigma * sigma) / 8;
  const double log_in = std::log(release.sampling);
  const double log_out = std::log1p(-release.sampling);
  double sum = -std::numeric_limits<double>::infinity();
  for (double z = -12 * sigma; z < order + 12 * sigma; z += step) {
    const double ratio = log_add(log_out, log_in + (2 * z - 1) / (2 * sigma * sigma));
    sum = log_add(sum, order * ratio - z * z / (2 * sigma * sigma));
  }
  return sum + std::log(step / sigma / std::sqrt(2 * std::numbers::pi));
}

// Of one release; infinity where it is not worth the time to know.
double divergence(const SampledGaussian& release, double order) {
  if (release.sampling >= 1) return order / (2 * release.noise_multiplier * release.noise_multiplier);
  const bool is_whole = order == std::floor(order);
  if (!is_whole && release.noise_multiplier < 0.3) return std::numeric_limits<double>::infinity();
  const double moment =
      is_whole ? log_moment(release, static_cast<uint32_t>(order)) : log_moment_between(release, order);
  return std::max(0.0, moment) / (order - 1);
}

}  // namespace

ReleaseCost::ReleaseCost(const SampledGaussian& release) {
  assert(release.noise_multiplier > 0 && release.sampling > 0 && release.sampling <= 1);
  for (const double order : orders()) divergences_.push_back(divergence(release, order));
}

double ReleaseCost::epsilon(uint64_t times, double delta) const {
  assert(delta > 0 && delta < 1);
  if (times == 0) return 0;
  double best = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < divergences_.size(); ++i) {
    const double order = orders()[i];
    const double spent = static_cast<double>(times) * divergences_[i];
    best = std::min(best, spent + std::log1p(-1 / order) - std::log(delta * order) / (order - 1));
  }
  return std::max(0.0, best);
}

double epsilon_of(const SampledGaussian& release, uint64_t times, double delta) {
  return ReleaseCost(release).epsilon(times, delta);
}

uint64_t releases_within(double epsilon, double delta, const SampledGaussian& release, uint64_t most) {
  const ReleaseCost cost(release);
  if (cost.epsilon(most, delta) <= epsilon) return most;
  uint64_t too_many = most;
  uint64_t within = 0;
  while (too_many - within > 1) {
    const uint64_t middle = within + (too_many - within) / 2;
    (cost.epsilon(middle, delta) <= epsilon ? within : too_many) = middle;
  }
  return within;
}

double noise_for(double epsilon, double delta, double sampling, uint64_t times) {
  const auto is_enough = [&](uint32_t steps) {
    return epsilon_of({steps / kStepsPerUnit, sampling}, times, delta) <= epsilon;
  };
  if (!is_enough(kMaxNoiseSteps)) {
    throw input_error("epsilon {} for {} rounds: needs noise of more than {} times the clip", epsilon, times,
                      kMaxNoiseSteps / kStepsPerUnit);
  }
  uint32_t too_little = 0;
  uint32_t enough = kMaxNoiseSteps;
  while (enough - too_little > 1) {
    const uint32_t middle = too_little + (enough - too_little) / 2;
    (is_enough(middle) ? enough : too_little) = middle;
  }
  return enough / kStepsPerUnit;
}

}  // namespace bitfed
