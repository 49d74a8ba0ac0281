#include "bitfed/nn/rotated_weights.h"

#include <algorithm>
#include <cmath>

namespace bitfed {
namespace {

constexpr float kLambdaStart = 0.9f;
constexpr float kThetaStart = 0.78539816f;  // a quarter of pi: where |sin| is 0 or 1 its gradient vanishes
constexpr float kGammaStart = 0.1f;
constexpr float kTiny = 1e-12f;  // a filter of equal numbers has no deviation

Matrix random_orthogonal(size_t size, RandomStream random) {
  Matrix matrix(size, size);
  for (size_t r = 0; r < size; ++r) {
    for (size_t c = 0; c < size; ++c) matrix.row(r)[c] = static_cast<float>(random.normal());
  }
  return polar_factor(matrix);
}

// body(index in the filter without padding, place in it with padding)
template <typename Body>
void for_each_place(const Filters& filters, Body body) {
  size_t index = 0;
  for (size_t r = 0; r < filters.shape.rows; ++r) {
    for (size_t c = 0; c < filters.shape.columns; ++c, ++index) body(index, r * filters.stride + c);
  }
}

float slope_of_absolute_sine(float angle) {
  return std::sin(angle) >= 0 ? std::cos(angle) : -std::cos(angle);
}

}  // namespace

Surrogate Surrogate::of_weights(double part) {
  const double t = std::pow(10.0, -2 + 3 * part);
  return {static_cast<float>(t), static_cast<float>(std::max(1 / t, 1.0))};
}

Surrogate Surrogate::of_activations(double part) {
  return {std::max(of_weights(part).t, 1.0f), 1};
}

RotatedWeights::RotatedWeights(size_t filters, size_t inputs, const RotatedOptions& options,
                               const std::string& name)
    : inputs_(inputs),
      options_(options),
      weights_(name + ".weights", filters, inputs),
      lambda_(name + ".lambda", 1, 1),
      theta_(name + ".theta", 1, filters),
      gamma_(name + ".gamma", 1, 1),
      r1_(name + ".r1", FilterShape(inputs).rows, FilterShape(inputs).rows, true),
      r2_(name + ".r2", FilterShape(inputs).columns, FilterShape(inputs).columns, true),
      server_(filters, inputs),
      server_standard_(server_),
      standard_(server_),
      turned_(server_),
      mixed_(server_),
      scratch_(server_),
      gradient_(server_),
      deviations_(filters),
      by_filter_(filters, inputs),
      by_input_(padded(inputs), filters) {}

std::vector<Parameter*> RotatedWeights::parameters() {
  std::vector<Parameter*> all = {&weights_, &theta_, &r1_, &r2_};
  if (options_.lambda) all.push_back(&lambda_);
  if (options_.beta) all.push_back(&gamma_);
  return all;
}

void RotatedWeights::start(RandomStream random) {
  const double limit = 1 / std::sqrt(static_cast<double>(inputs_));
  for (size_t f = 0; f < weights_.values.rows; ++f) {
    for (size_t i = 0; i < inputs_; ++i)
      weights_.values.row(f)[i] = static_cast<float>(limit * (2 * random.uniform() - 1));
  }
  lambda_.values.row(0)[0] = kLambdaStart;
  gamma_.values.row(0)[0] = kGammaStart;
  std::fill_n(theta_.values.row(0), theta_.count(), kThetaStart);
  r1_.values = random_orthogonal(r1_.values.rows, random.substream(1));
  r2_.values = random_orthogonal(r2_.values.rows, random.substream(2));
}

void RotatedWeights::fuse(Filters* fused) const {
  const float lambda = options_.lambda ? std::clamp(lambda_.values.row(0)[0], 0.0f, 1.0f) : 1.0f;
  for (size_t f = 0; f < fused->count; ++f) {
    const float* local = weights_.values.row(f);
    for_each_place(*fused, [&](size_t i, size_t at) {
      fused->filter(f)[at] = lambda * local[i] + (1 - lambda) * server_.filter(f)[at];
    });
  }
}

void RotatedWeights::standardise(Filters* filters, std::vector<float>* deviations) const {
  const auto count = static_cast<float>(inputs_);
  for (size_t f = 0; f < filters->count; ++f) {
    float* filter = filters->filter(f);
    float sum = 0;
    for_each_place(*filters, [&](size_t, size_t at) { sum += filter[at]; });
    const float mean = sum / count;
    float squares = 0;
    for_each_place(*filters,
                   [&](size_t, size_t at) { squares += (filter[at] - mean) * (filter[at] - mean); });
    const float deviation = std::sqrt(squares / count) + kTiny;
    for_each_place(*filters, [&](size_t, size_t at) { filter[at] = (filter[at] - mean) / deviation; });
    (*deviations)[f] = deviation;
  }
}

void RotatedWeights::begin_round() {
  if (options_.rotation == RotationBy::kClientOrthogonal) {
    r1_.values = polar_factor(r1_.values);
    r2_.values = polar_factor(r2_.values);
  }
  for (size_t f = 0; f < server_.count; ++f) {
    const float* local = weights_.values.row(f);
    for_each_place(server_, [&](size_t i, size_t at) { server_.filter(f)[at] = local[i]; });
  }
  server_standard_ = server_;
  standardise(&server_standard_, &deviations_);
}

void RotatedWeights::begin_epoch(size_t iterations, double part) {
  surrogate_ = Surrogate::of_weights(part);
  if (options_.rotation == RotationBy::kServer) return;
  fuse(&standard_);
  standardise(&standard_, &deviations_);
  optimise_rotation(standard_, iterations, &r1_.values, &r2_.values);
}

void RotatedWeights::end_round() {
  fuse(&standard_);
  for (size_t f = 0; f < standard_.count; ++f) {
    float* local = weights_.values.row(f);
    for_each_place(standard_, [&](size_t i, size_t at) { local[i] = standard_.filter(f)[at]; });
  }
}

void RotatedWeights::forward(Matrix* signs) {
  fuse(&standard_);
  standardise(&standard_, &deviations_);
  rotate(standard_, r1_.values, r2_.values, &scratch_, &turned_);
  const float beta = options_.beta ? std::fabs(std::sin(gamma_.values.row(0)[0])) : 0.0f;
  for (size_t f = 0; f < standard_.count; ++f) {
    const float alpha = std::fabs(std::sin(theta_.values.row(0)[f]));
    const float* w = standard_.filter(f);
    const float* turned = turned_.filter(f);
    const float* server = server_standard_.filter(f);
    float* mixed = mixed_.filter(f);
    float* signs_of_filter = by_filter_.row(f);
    for_each_place(standard_, [&](size_t i, size_t at) {
      mixed[at] = w[at] + alpha * (turned[at] - w[at]) + beta * (server[at] - w[at]);
      signs_of_filter[i] = mixed[at] >= 0 ? 1.0f : -1.0f;
    });
  }
  neural_kernels().transpose(by_filter_.values.data(), by_filter_.rows, by_filter_.stride, by_input_.row(0),
                             by_input_.stride);
  std::copy_n(by_input_.row(0), inputs_ * by_input_.stride, signs->row(0));
}

void RotatedWeights::backward(const Matrix& gradient) {
  const float beta = options_.beta ? std::fabs(std::sin(gamma_.values.row(0)[0])) : 0.0f;
  const float lambda = options_.lambda ? std::clamp(lambda_.values.row(0)[0], 0.0f, 1.0f) : 1.0f;
  float of_beta = 0;
  neural_kernels().transpose(gradient.row(0), inputs_, gradient.stride, by_filter_.row(0), by_filter_.stride);
  // mixed_ becomes alpha times the gradient of v, to be turned back.
  for (size_t f = 0; f < standard_.count; ++f) {
    const float alpha = std::fabs(std::sin(theta_.values.row(0)[f]));
    const float* w = standard_.filter(f);
    const float* from = by_filter_.row(f);
    float of_alpha = 0;
    for_each_place(standard_, [&](size_t i, size_t at) {
      const float g = from[i] * surrogate_.slope(mixed_.filter(f)[at]);
      of_alpha += g * (turned_.filter(f)[at] - w[at]);
      of_beta += g * (server_standard_.filter(f)[at] - w[at]);
      gradient_.filter(f)[at] = (1 - alpha - beta) * g;
      mixed_.filter(f)[at] = alpha * g;
    });
    theta_.gradient.row(0)[f] = of_alpha * slope_of_absolute_sine(theta_.values.row(0)[f]);
  }
  gamma_.gradient.row(0)[0] = of_beta * slope_of_absolute_sine(gamma_.values.row(0)[0]);
  rotate_back(mixed_, r1_.values, r2_.values, &scratch_, &turned_);
  const auto count = static_cast<float>(inputs_);
  float of_lambda = 0;
  for (size_t f = 0; f < standard_.count; ++f) {
    const float* w = standard_.filter(f);
    float* g = gradient_.filter(f);
    float sum = 0;
    float along = 0;
    for_each_place(standard_, [&](size_t, size_t at) {
      g[at] += turned_.filter(f)[at];
      sum += g[at];
      along += g[at] * w[at];
    });
    const float* local = weights_.values.row(f);
    float* out = weights_.gradient.row(f);
    for_each_place(standard_, [&](size_t i, size_t at) {
      const float fused = (g[at] - sum / count - w[at] * along / count) / deviations_[f];
      out[i] = lambda * fused;
      of_lambda += fused * (local[i] - server_.filter(f)[at]);
    });
  }
  lambda_.gradient.row(0)[0] = of_lambda;
}

}  // namespace bitfed
