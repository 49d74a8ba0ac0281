#pragma once

#include <span>
#include <vector>

#include "bitfed/base/hash/random.h"

namespace bitfed {

// The update m of a layer's weights in FedBAT, learned so that it can be sent as signs. From some step on the
// forward pass replaces each m by a random ±alpha,
//   S(m) = +alpha with probability clamp((m / alpha + 1) / 2, 0, 1), else -alpha,
// whose expectation is m where |m| <= alpha. alpha = clamp(alpha0 exp(6 a), 5e-4, 5e-2), where alpha0 is the
// mean of |m| when binarisation begins and a is learned, initialised to 0.
class BinarisedUpdate {
 public:
  static constexpr float kMinAlpha = 5e-4f;
  static constexpr float kMaxAlpha = 5e-2f;

  explicit BinarisedUpdate(size_t count) : update_(count), positive_(count) {}

  std::span<const float> update() const { return update_; }
  bool is_binary() const { return is_binary_; }
  void binarise();  // from now on
  float alpha() const { return alpha_; }

  // Draws S(m) again; positive() gives its signs.
  void draw(RandomStream* random);
  bool positive(size_t i) const { return positive_[i]; }
  // The change of a weight: ±alpha as drawn, or m itself before binarisation.
  float value(size_t i) const;

  // One step of gradient descent, given the gradient of the values. Straight-through estimator: the gradient
  // of m is passed where |m| <= alpha. The derivative by alpha is ±1 where |m| > alpha, else (S(m) - m) /
  // alpha.
  void descend(std::span<const float> gradient, float rate);

 private:
  void set_exponent(float exponent);

  std::vector<float> update_;
  std::vector<bool> positive_;
  double first_alpha_ = 0;
  float exponent_ = 0;  // a
  float alpha_ = kMinAlpha;
  bool is_clamped_ = false;
  bool is_binary_ = false;
};

}  // namespace bitfed
