#include "bitfed/federated/arithmetic/binarised_update.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace bitfed {
namespace {

constexpr double kGrowth = 6;  // factor of a in the exponent

}  // namespace

void BinarisedUpdate::binarise() {
  double sum = 0;
  for (const float m : update_) sum += std::fabs(m);
  first_alpha_ = sum / static_cast<double>(update_.size());
  is_binary_ = true;
  set_exponent(0);
}

void BinarisedUpdate::set_exponent(float exponent) {
  exponent_ = exponent;
  const auto alpha = static_cast<float>(first_alpha_ * std::exp(kGrowth * exponent));
  alpha_ = std::clamp(alpha, kMinAlpha, kMaxAlpha);
  is_clamped_ = alpha_ != alpha;
}

void BinarisedUpdate::draw(RandomStream* random) {
  for (size_t i = 0; i < update_.size(); ++i)
    positive_[i] = static_cast<float>(random->uniform()) < (update_[i] / alpha_ + 1) / 2;
}

float BinarisedUpdate::value(size_t i) const {
  if (!is_binary_) return update_[i];
  return positive_[i] ? alpha_ : -alpha_;
}

void BinarisedUpdate::descend(std::span<const float> gradient, float rate) {
  assert(gradient.size() == update_.size());
  if (!is_binary_) {
    for (size_t i = 0; i < update_.size(); ++i) update_[i] -= rate * gradient[i];
    return;
  }
  double of_alpha = 0;
  for (size_t i = 0; i < update_.size(); ++i) {
    const float relative = update_[i] / alpha_;
    if (std::fabs(relative) > 1) {
      of_alpha += relative > 0 ? gradient[i] : -gradient[i];
    } else {
      of_alpha += gradient[i] * ((positive_[i] ? 2.0f : 0.0f) - (relative + 1));
      update_[i] -= rate * gradient[i];
    }
  }
  if (!is_clamped_) set_exponent(exponent_ - static_cast<float>(rate * of_alpha * kGrowth * alpha_));
}

}  // namespace bitfed
