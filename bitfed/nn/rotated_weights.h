#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "bitfed/nn/layer.h"
#include "bitfed/nn/rotation.h"

namespace bitfed {

// What the surrogate of the sign depends on as training goes on: F'(x) = max(k (sqrt(2) t - t^2 |x|), 0).
struct Surrogate {
  float t = 1;
  float k = 1;

  float slope(float x) const { return std::max(k * (1.41421356f * t - t * t * std::fabs(x)), 0.0f); }
  // After a part of all rounds and epochs, from 0 to 1: t from 0.01 to 10, k = max(1 / t, 1) …
  static Surrogate of_weights(double part);
  // … and for activations t not below 1, k = 1.
  static Surrogate of_activations(double part);
};

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
  void begin_epoch(size_t iterations, double part);  // turns R toward the weights, part as for Surrogate
  void end_round();                                  // w_local becomes the fused weights

  // signs, as a row an input and a column a filter (padded).
  void forward(Matrix* signs);
  // From the gradient of the signs, of the same shape, to those of the parameters.
  void backward(const Matrix& gradient);

 private:
  void fuse(Filters* fused) const;
  void standardise(Filters* filters, std::vector<float>* deviations) const;

  size_t inputs_;
  RotatedOptions options_;
  Parameter weights_;  // w_local, a row a filter
  Parameter lambda_, theta_, gamma_;
  Parameter r1_, r2_;  // statistics: set, not descended
  Surrogate surrogate_;
  Filters server_, server_standard_;
  Filters standard_, turned_, mixed_, scratch_, gradient_;
  std::vector<float> deviations_;
  Matrix by_filter_, by_input_;  // signs or their gradient, a row a filter, and turned about
};

}  // namespace bitfed
