#include "bitfed/nn/rotated/rotated_weights.h"

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

// Rows of `columns` numbers each from where they stand `from_step` apart to where it is `to_step`: between a
// filter as a row of numbers and as a matrix with its padding.
void copy_rows(const float* from, size_t from_step, const FilterShape& shape, float* to, size_t to_step) {
  if (from_step == to_step) {
    std::copy_n(from, shape.rows * from_step, to);
    return;
  }
  for (size_t r = 0; r < shape.rows; ++r) std::copy_n(from + r * from_step, shape.columns, to + r * to_step);
}

void expand(const float* numbers, const Filters& filters, float* filter) {
  copy_rows(numbers, filters.shape.columns, filters.shape, filter, filters.stride);
}

void compact(const float* filter, const Filters& filters, float* numbers) {
  copy_rows(filter, filters.stride, filters.shape, numbers, filters.shape.columns);
}

float slope_of_absolute_sine(float angle) {
  return std::sin(angle) >= 0 ? std::cos(angle) : -std::cos(angle);
}

}  // namespace

Surrogate surrogate_of_weights(double part) {
  const double t = std::pow(10.0, -2 + 3 * part);
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
      server_(filters, inputs),
      server_standard_(server_),
      standard_(server_),
      turned_(server_),
      gradient_(kRotatedTogether, inputs),
      kept_(gradient_),
      turned_gradient_(gradient_),
      fused_(server_.filter_floats()),
      blended_(server_.filter_floats()),
      scratch_(server_.filter_floats()),
      inverse_deviations_(filters),
      workspace_(inputs),
      search_(server_),
      signs_(filters, inputs) {
  if (server_.is_padded()) local_ = server_;
  mask_ = Floats(server_.filter_floats());
  const std::vector<float> ones(inputs, 1.0f);
  expand(ones.data(), server_, mask_.data());
}

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

float RotatedWeights::lambda() const {
  return options_.lambda ? std::clamp(lambda_.values.row(0)[0], 0.0f, 1.0f) : 1.0f;
}

float RotatedWeights::beta() const {
  return options_.beta ? std::fabs(std::sin(gamma_.values.row(0)[0])) : 0.0f;
}

const float* RotatedWeights::local(size_t f) const {
  return server_.is_padded() ? local_.filter(f) : weights_.values.row(f);
}

void RotatedWeights::fuse(size_t f) {
  if (server_.is_padded()) expand(weights_.values.row(f), local_, local_.filter(f));
  neural_kernels().combine(local(f), lambda(), server_.filter(f), 1 - lambda(), fused_.size(), fused_.data());
}

void RotatedWeights::standardise(const float* filter, size_t f, float* standard) {
  const NeuralKernels& kernels = neural_kernels();
  const size_t count = standard_.filter_floats();
  const float mean = kernels.mean(filter, count, inputs_);
  const float inverse = 1 / (kernels.deviation(filter, count, mask_.data(), inputs_, mean) + kTiny);
  kernels.standardise(filter, count, mask_.data(), mean, inverse, standard);
  inverse_deviations_[f] = inverse;
}

void RotatedWeights::begin_round() {
  if (options_.rotation == RotationBy::kClientOrthogonal) {
    r1_.values = polar_factor(r1_.values);
    r2_.values = polar_factor(r2_.values);
  }
  for (size_t f = 0; f < server_.count; ++f) {
    expand(weights_.values.row(f), server_, server_.filter(f));
    standardise(server_.filter(f), f, server_standard_.filter(f));
  }
}

void RotatedWeights::begin_epoch(size_t iterations, double part) {
  surrogate_ = surrogate_of_weights(part);
  if (options_.rotation == RotationBy::kServer) return;
  for (size_t f = 0; f < standard_.count; ++f) {
    fuse(f);
    standardise(fused_.data(), f, scratch_.data());
    search_.take(f, scratch_.data());
  }
  search_.improve(iterations, &r1_.values, &r2_.values);
}

void RotatedWeights::end_round() {
  for (size_t f = 0; f < server_.count; ++f) {
    fuse(f);
    compact(fused_.data(), server_, weights_.values.row(f));
  }
}

const Matrix& RotatedWeights::forward() {
  const NeuralKernels& kernels = neural_kernels();
  for_each_run(standard_.count, kRotatedTogether, [&](const FilterRun& run) {
    for (size_t f = run.first; f < run.first + run.count; ++f) {
      fuse(f);
      standardise(fused_.data(), f, standard_.filter(f));
    }
    rotate(standard_.filter(run.first), run.count, r1_.values, r2_.values, &workspace_,
           turned_.filter(run.first));
    for (size_t f = run.first; f < run.first + run.count; ++f) {
      float* signs = standard_.is_padded() ? scratch_.data() : signs_.row(f);
      kernels.blend_filter(blend(f), blended_.data());
      kernels.signs(blended_.data(), blended_.size(), 0, signs);
      if (standard_.is_padded()) compact(signs, standard_, signs_.row(f));
    }
  });
  return signs_;
}

FilterBlend RotatedWeights::blend(size_t f) const {
  return {standard_.filter(f),
          turned_.filter(f),
          server_standard_.filter(f),
          std::fabs(std::sin(theta_.values.row(0)[f])),
          beta(),
          standard_.filter_floats()};
}

void RotatedWeights::backward_to_blend(const FilterRun& run, const Matrix& gradient, float* of_beta) {
  for (size_t i = 0; i < run.count; ++i) {
    const size_t f = run.first + i;
    const float* of_signs = gradient.row(f);
    if (gradient_.is_padded()) {
      expand(of_signs, gradient_, gradient_.filter(i));
      of_signs = gradient_.filter(i);
    }
    FilterBlendBackward back{blend(f), surrogate_, of_signs, kept_.filter(i), turned_gradient_.filter(i),
                             0,        0};
    neural_kernels().blend_filter_back(&back);
    theta_.gradient.row(0)[f] = back.of_alpha * slope_of_absolute_sine(theta_.values.row(0)[f]);
    *of_beta += back.of_beta;
  }
}

void RotatedWeights::backward_to_weights(const FilterRun& run, float* of_lambda) {
  for (size_t i = 0; i < run.count; ++i) {
    const size_t f = run.first + i;
    float* to = standard_.is_padded() ? scratch_.data() : weights_.gradient.row(f);
    FilterFuseBackward fuse{standard_.filter(f),
                            kept_.filter(i),
                            gradient_.filter(i),
                            local(f),
                            server_.filter(f),
                            mask_.data(),
                            standard_.filter_floats(),
                            inputs_,
                            inverse_deviations_[f],
                            lambda(),
                            to,
                            0};
    neural_kernels().fuse_filter_back(&fuse);
    if (standard_.is_padded()) compact(to, standard_, weights_.gradient.row(f));
    *of_lambda += fuse.of_lambda;
  }
}

void RotatedWeights::backward(const Matrix& gradient) {
  float of_beta = 0;
  float of_lambda = 0;
  prepare_way_back(r2_.values, &workspace_);
  for_each_run(standard_.count, kRotatedTogether, [&](const FilterRun& run) {
    backward_to_blend(run, gradient, &of_beta);
    // R' w comes from w by R: its gradient goes back by R.
    rotate_back(turned_gradient_.filter(0), run.count, r1_.values, &workspace_, gradient_.filter(0));
    backward_to_weights(run, &of_lambda);
  });
  gamma_.gradient.row(0)[0] = of_beta * slope_of_absolute_sine(gamma_.values.row(0)[0]);
  lambda_.gradient.row(0)[0] = of_lambda;
}

}  // namespace bitfed
