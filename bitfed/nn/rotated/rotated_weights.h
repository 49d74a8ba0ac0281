#pragma once

#include <vector>

#include "bitfed/nn/layers/layer.h"
#include "bitfed/nn/rotated/rotation_search.h"

namespace bitfed {

// The surrogate of the weights' sign after a part of all rounds and epochs, from 0 to 1: t from 0.01 to 10,
// k = max(1 / t, 1).
Surrogate surrogate_of_weights(double part);

// Who sets R right: clients at the start of every epoch, from what the server averaged; the same, from the
// orthogonal matrices nearest to that; or the server alone, and clients leave it as it is.
enum class RotationBy { kClient, kClientOrthogonal, kServer };

struct RotatedOptions {
  bool lambda = true;  // a learned blend with the server's weights
  bool beta = true;    // a learned pull toward them
  RotationBy rotation = RotationBy::kClient;
};

// The latent weights of a binary layer as FedBNN trains them. Of every filter w_local, with w_server what the
// round began with,
//   w = lambda w_local + (1 - lambda) w_server, standardised (mean 0, deviation 1),
//   v = w + alpha (R' w - w) + beta (w_server, standardised - w),   alpha = |sin theta|, beta = |sin gamma|,
// and the layer multiplies by sign(v). R is fixed while gradients flow, through it as well; lambda is clamped
// to [0, 1]. The fused w, not standardised, is what a client uploads.
class RotatedWeights {
 public:
  RotatedWeights(size_t filters, size_t inputs, const RotatedOptions& options, const std::string& name);

  std::vector<Parameter*> parameters();
  void start(RandomStream random);
  void begin_round();                                // the server's weights are the present ones
  void begin_epoch(size_t iterations, double part);  // turns R toward the weights; part as for the surrogate
  void end_round();                                  // w_local becomes the fused weights

  // The signs, a row a filter.
  const Matrix& forward();
  // From the gradient of the signs, of the same shape, to those of the parameters.
  void backward(const Matrix& gradient);

 private:
  float lambda() const;
  float beta() const;
  const float* local(size_t filter) const;
  void fuse(size_t filter);
  void standardise(const float* filter, size_t place, float* standard);
  FilterBlend blend(size_t filter) const;
  void backward_to_blend(const FilterRun& run, const Matrix& gradient, float* of_beta);
  void backward_to_weights(const FilterRun& run, float* of_lambda);

  size_t inputs_;
  RotatedOptions options_;
  Parameter weights_;  // w_local, a row a filter
  Parameter lambda_, theta_, gamma_;
  Parameter r1_, r2_;  // statistics: set, not descended
  Surrogate surrogate_ = surrogate_of_weights(0);
  Floats mask_;    // of a filter: 1 where there is a weight
  Filters local_;  // empty where filters have no padding: the weights themselves will do
  Filters server_, server_standard_;
  Filters standard_, turned_;
  Filters gradient_, kept_, turned_gradient_;  // of a run of filters
  Floats fused_, blended_, scratch_;           // of a filter
  std::vector<float> inverse_deviations_;
  RotationWorkspace workspace_;
  RotationSearch search_;
  Matrix signs_;
};

}  // namespace bitfed
