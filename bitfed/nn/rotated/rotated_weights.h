#pragma once

#include <vector>

#include "bitfed/nn/layers/layer.h"
#include "bitfed/nn/rotated/rotation_search.h"

namespace bitfed {

// The surrogate of the weights' sign. `progress` is the share of training that is over, from 0 to 1: t grows
// from 0.01 to 10, k = max(1 / t, 1).
Surrogate surrogate_of_weights(double progress);

// How R follows the weights: improved at the start of every epoch, from where it is; the same, but replaced
// by the nearest orthogonal matrices when the anchor is set; or left as it is. kNone: there is no R, alpha is
// 0, and theta, R1 and R2 are no parameters.
enum class RotationUpdate { kEveryEpoch, kEveryEpochOrthogonal, kFixed, kNone };

struct RotatedOptions {
  bool lambda = true;  // a learned blend with the anchor
  bool beta = true;    // a learned pull toward the anchor
  RotationUpdate rotation = RotationUpdate::kEveryEpoch;
  // Of the initial weights. Their signs do not depend on it, but smaller weights move further in a step.
  double initial_scale = 1;

  bool operator==(const RotatedOptions&) const = default;
};

// The latent weights of a binary layer as FedBNN trains them. For every filter, with w_local its weights and
// w_anchor those that set_anchor() found,
//   w = lambda w_local + (1 - lambda) w_anchor, standardised (mean 0, standard deviation 1),
//   v = w + alpha (R' w - w) + beta (w_anchor, standardised - w),   alpha = |sin theta|, beta = |sin gamma|,
// and the layer multiplies by sign(v). R is constant in the backward pass, which goes through it; lambda is
// clamped to [0, 1].
class RotatedWeights {
 public:
  RotatedWeights(size_t filters, size_t inputs, const RotatedOptions& options, const std::string& name);

  std::vector<Parameter*> parameters();
  void initialise(RandomStream random);
  // The present weights become the anchor.
  void set_anchor();
  // Improves R by `iterations` of RotationSearch; progress as for the surrogate.
  void begin_epoch(size_t iterations, double progress);
  // w_local becomes the fused weights, lambda w_local + (1 - lambda) w_anchor.
  void fuse();

  // The signs, a row per filter.
  const Matrix& forward();
  // From the gradient of the signs, of the same shape, to those of the parameters.
  void backward(const Matrix& gradient);

 private:
  bool rotates() const { return options_.rotation != RotationUpdate::kNone; }
  float lambda() const;
  float beta() const;
  const float* local(size_t filter) const;
  void fuse_filter(size_t filter);
  void standardise(const float* filter, size_t index, float* standard);
  FilterBlend blend(size_t filter) const;
  void backward_to_blend(size_t filter, const Matrix& gradient, float* of_beta);
  void backward_to_weights(size_t filter, float* of_lambda);

  size_t inputs_;
  RotatedOptions options_;
  Parameter weights_;  // w_local, a row per filter
  Parameter lambda_, theta_, gamma_;
  Parameter r1_, r2_;  // statistics: set by the search, not by gradients
  Surrogate surrogate_ = surrogate_of_weights(0);
  Floats mask_;    // of a filter: 1 where there is a weight
  Filters local_;  // empty where filters have no padding: the weights serve
  Filters anchor_, anchor_standard_;
  Filters standard_, rotated_;
  Filters gradient_, kept_, rotated_gradient_;  // of a filter
  Floats fused_, blended_, scratch_;            // of a filter
  std::vector<float> inverse_stds_;
  FilterRotation rotation_;
  RotationSearch search_;
  Matrix signs_;
};

}  // namespace bitfed
