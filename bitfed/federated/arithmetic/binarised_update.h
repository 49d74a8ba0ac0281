#pragma once

#include <span>
#include <vector>

#include "bitfed/base/hash/random.h"

namespace bitfed {

// The update m of a layer's weights in FedBAT, which is learned so that it can be sent as signs: from some
// step on it stands for ±alpha, each at random,
//   S(m) = +alpha with probability clamp((m / alpha + 1) / 2, 0, 1), else -alpha,
// whose mean is m where |m| <= alpha. alpha = clamp(alpha0 exp(6 a), 5e-4, 5e-2), with alpha0 the mean of |m|
// when binarisation begins and a learned from 0 on.
class BinarisedUpdate {
 public:
  static constexpr float kLeast = 5e-4f;
  static constexpr float kMost = 5e-2f;

  explicit BinarisedUpdate(size_t count) : update_(count), positive_(count) {}

  std::span<const float> update() const { return update_; }
  bool is_binary() const { return is_binary_; }
  void binarise();  // from now on
  float alpha() const { return alpha_; }

  // Draws S(m) anew: what positive() says.
  void draw(RandomStream* random);
  bool positive(size_t i) const { return positive_[i]; }
  // What the weights are changed by: ±alpha as drawn, or m itself while it is not binary.
  float value(size_t i) const;

  // One step along the gradient of the values: of m it passes where |m| <= alpha; of alpha it is +-1 where m
  // is beyond, else what the draw differs by from its mean, over alpha.
  void descend(std::span<const float> gradient, float rate);

 private:
  void set_exponent(float exponent);

  std::vector<float> update_;
  std::vector<bool> positive_;
  double first_alpha_ = 0;
  float exponent_ = 0;  // a
  float alpha_ = kLeast;
  bool is_clamped_ = false;
  bool is_binary_ = false;
};

}  // namespace bitfed
