#include "bitfed/nn/rotated/rotated_weights.h"

#include <algorithm>
#include <cmath>

#include "bitfed/nn/kernels/sine.h"

namespace bitfed {
namespace {

constexpr float kInitialLambda = 0.9f;
constexpr float kInitialTheta = 0.78539816f;  // pi / 4: where |sin| is 0 or 1 its gradient is 0 or undefined
constexpr float kInitialGamma = 0.1f;
constexpr float kTiny = 1e-12f;  // the standard deviation of a filter of equal weights is 0

Matrix random_orthogonal(size_t size, RandomStream random) {
  Matrix matrix(size, size);
  for (size_t r = 0; r < size; ++r) {
    for (size_t c = 0; c < size; ++c) matrix.row(r)[c] = static_cast<float>(random.normal());
  }
  return polar_factor(matrix);
}

// Copies rows of `columns` weights, `from_step` apart, to rows `to_step` apart: between a filter as
// contiguous weights and as a matrix with padding.
void copy_rows(const float* from, size_t from_step, const FilterShape& shape, float* to, size_t to_step) {
  if (from_step == to_step) {
    std::copy_n(from, shape.rows * from_step, to);
    return;
  }
  for (size_t r = 0; r < shape.rows; ++r) std::copy_n(from + r * from_step, shape.columns, to + r * to_step);
}

void expand(const float* weights, const Filters& filters, float* filter) {
  copy_rows(weights, filters.shape.columns, filters.shape, filter, filters.stride);
}

void compact(const float* filter, const Filters& filters, float* weights) {
  copy_rows(filter, filters.stride, filters.shape, weights, filters.shape.columns);
}

float slope_of_absolute_sine(float angle) {
  return sine(angle) >= 0 ? cosine(angle) : -cosine(angle);
}

}  // namespace

Surrogate surrogate_of_weights(double progress) {
  const double t = std::pow(10.0, -2 + 3 * progress);
  return {static_cast<float>(t), static_cast<float>(std::max(1 / t, 1.0))};
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
      anchor_(filters, inputs),
      anchor_standard_(anchor_),
      standard_(anchor_),
      rotated_(anchor_),
      gradient_(1, inputs),
      kept_(gradient_),
      rotated_gradient_(gradient_),
      fused_(anchor_.filter_floats()),
      blended_(anchor_.filter_floats()),
      scratch_(anchor_.filter_floats()),
      inverse_stds_(filters),
      rotation_(inputs),
      search_(options.rotation == RotationUpdate::kNone ? gradient_ : anchor_),  // unused if there is none
      signs_(filters, inputs) {
  weights_.decays = true;
  if (anchor_.is_padded()) local_ = anchor_;
  mask_ = Floats(anchor_.filter_floats());
  const std::vector<float> ones(inputs, 1.0f);
  expand(ones.data(), anchor_, mask_.data());
}

std::vector<Parameter*> RotatedWeights::parameters() {
  std::vector<Parameter*> all = {&weights_};
  if (rotates()) all.insert(all.end(), {&theta_, &r1_, &r2_});
  if (options_.lambda) all.push_back(&lambda_);
  if (options_.beta) all.push_back(&gamma_);
  return all;
}

void RotatedWeights::initialise(RandomStream random) {
  const double limit = options_.initial_scale / std::sqrt(static_cast<double>(inputs_));
  for (size_t f = 0; f < weights_.values.rows; ++f) {
    for (size_t i = 0; i < inputs_; ++i)
      weights_.values.row(f)[i] = static_cast<float>(limit * (2 * random.uniform() - 1));
  }
  lambda_.values.row(0)[0] = kInitialLambda;
  gamma_.values.row(0)[0] = kInitialGamma;
  if (!rotates()) return;
  std::fill_n(theta_.values.row(0), theta_.count(), kInitialTheta);
  r1_.values = random_orthogonal(r1_.values.rows, random.substream(1));
  r2_.values = random_orthogonal(r2_.values.rows, random.substream(2));
}

float RotatedWeights::lambda() const {
  return options_.lambda ? std::clamp(lambda_.values.row(0)[0], 0.0f, 1.0f) : 1.0f;
}

float RotatedWeights::beta() const {
  return options_.beta ? std::fabs(sine(gamma_.values.row(0)[0])) : 0.0f;
}

const float* RotatedWeights::local(size_t f) const {
  return anchor_.is_padded() ? local_.filter(f) : weights_.values.row(f);
}

void RotatedWeights::fuse_filter(size_t f) {
  if (anchor_.is_padded()) expand(weights_.values.row(f), local_, local_.filter(f));
  neural_kernels().combine(local(f), lambda(), anchor_.filter(f), 1 - lambda(), fused_.size(), fused_.data());
}

void RotatedWeights::standardise(const float* filter, size_t f, float* standard) {
  const NeuralKernels& kernels = neural_kernels();
  const size_t count = standard_.filter_floats();
  const float mean = kernels.mean(filter, count, inputs_);
  const float inverse = 1 / (kernels.standard_deviation(filter, count, mask_.data(), inputs_, mean) + kTiny);
  kernels.standardise(filter, count, mask_.data(), mean, inverse, standard);
  inverse_stds_[f] = inverse;
}

void RotatedWeights::set_anchor() {
  if (options_.rotation == RotationUpdate::kEveryEpochOrthogonal) {
    r1_.values = polar_factor(r1_.values);
    r2_.values = polar_factor(r2_.values);
  }
  for (size_t f = 0; f < anchor_.count; ++f) {
    expand(weights_.values.row(f), anchor_, anchor_.filter(f));
    standardise(anchor_.filter(f), f, anchor_standard_.filter(f));
  }
}

void RotatedWeights::begin_epoch(size_t iterations, double progress) {
  surrogate_ = surrogate_of_weights(progress);
  if (options_.rotation == RotationUpdate::kFixed || !rotates()) return;
  for (size_t f = 0; f < standard_.count; ++f) {
    fuse_filter(f);
    standardise(fused_.data(), f, scratch_.data());
    search_.take(f, scratch_.data());
  }
  search_.improve(iterations, &r1_.values, &r2_.values);
}

void RotatedWeights::fuse() {
  for (size_t f = 0; f < anchor_.count; ++f) {
    fuse_filter(f);
    compact(fused_.data(), anchor_, weights_.values.row(f));
  }
}

const Matrix& RotatedWeights::forward() {
  const NeuralKernels& kernels = neural_kernels();
  if (rotates()) rotation_.take(r1_.values, r2_.values, false);
  for (size_t f = 0; f < standard_.count; ++f) {
    fuse_filter(f);
    standardise(fused_.data(), f, standard_.filter(f));
    if (rotates()) rotation_.rotate(standard_.filter(f), rotated_.filter(f));
    float* signs = standard_.is_padded() ? scratch_.data() : signs_.row(f);
    kernels.blend_filter(blend(f), blended_.data());
    kernels.signs(blended_.data(), blended_.size(), 0, signs);
    if (standard_.is_padded()) compact(signs, standard_, signs_.row(f));
  }
  return signs_;
}

FilterBlend RotatedWeights::blend(size_t f) const {
  return {standard_.filter(f),
          rotates() ? rotated_.filter(f) : standard_.filter(f),
          anchor_standard_.filter(f),
          rotates() ? std::fabs(sine(theta_.values.row(0)[f])) : 0.0f,
          beta(),
          standard_.filter_floats()};
}

void RotatedWeights::backward_to_blend(size_t f, const Matrix& gradient, float* of_beta) {
  const float* of_signs = gradient.row(f);
  if (gradient_.is_padded()) {
    expand(of_signs, gradient_, gradient_.filter(0));
    of_signs = gradient_.filter(0);
  }
  FilterBlendBackward back{blend(f), surrogate_, of_signs, kept_.filter(0), rotated_gradient_.filter(0),
                           0,        0};
  neural_kernels().blend_filter_backward(&back);
  theta_.gradient.row(0)[f] = back.of_alpha * slope_of_absolute_sine(theta_.values.row(0)[f]);
  *of_beta += back.of_beta;
}

void RotatedWeights::backward_to_weights(size_t f, float* of_lambda) {
  float* to = standard_.is_padded() ? scratch_.data() : weights_.gradient.row(f);
  FilterFuseBackward fuse{standard_.filter(f),
                          kept_.filter(0),
                          rotates() ? gradient_.filter(0) : rotated_gradient_.filter(0),  // zeros if none
                          local(f),
                          anchor_.filter(f),
                          mask_.data(),
                          standard_.filter_floats(),
                          inputs_,
                          inverse_stds_[f],
                          lambda(),
                          to,
                          0};
  neural_kernels().fuse_filter_backward(&fuse);
  if (standard_.is_padded()) compact(to, standard_, weights_.gradient.row(f));
  *of_lambda += fuse.of_lambda;
}

void RotatedWeights::backward(const Matrix& gradient) {
  float of_beta = 0;
  float of_lambda = 0;
  if (rotates()) rotation_.take(r1_.values, r2_.values, true);
  for (size_t f = 0; f < standard_.count; ++f) {
    backward_to_blend(f, gradient, &of_beta);
    // The gradient of R' w is multiplied by R.
    if (rotates()) rotation_.rotate(rotated_gradient_.filter(0), gradient_.filter(0));
    backward_to_weights(f, &of_lambda);
  }
  gamma_.gradient.row(0)[0] = of_beta * slope_of_absolute_sine(gamma_.values.row(0)[0]);
  lambda_.gradient.row(0)[0] = of_lambda;
}

}  // namespace bitfed
