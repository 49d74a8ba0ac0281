#include "bitfed/federated/methods/binarised_update.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace bitfed {
namespace {

constexpr float kGrowth = 6;  // of the exponent, against a

}  // namespace

void BinarisedUpdate::binarise() {
  double sum = 0;
  for (const float m : update_) sum += std::fabs(m);
  first_alpha_ = static_cast<float>(sum / static_cast<double>(update_.size()));
  is_binary_ = true;
}

float BinarisedUpdate::unclamped_alpha() const {
  return first_alpha_ * std::exp(kGrowth * exponent_);
}

float BinarisedUpdate::alpha() const {
  return std::clamp(unclamped_alpha(), kLeast, kMost);
}

void BinarisedUpdate::draw(RandomStream* random) {
  const float alpha = this->alpha();
  for (size_t i = 0; i < update_.size(); ++i)
    positive_[i] = static_cast<float>(random->uniform()) < (update_[i] / alpha + 1) / 2;
}

float BinarisedUpdate::value(size_t i) const {
  if (!is_binary_) return update_[i];
  return positive_[i] ? alpha() : -alpha();
}

void BinarisedUpdate::descend(std::span<const float> gradient, float rate) {
  assert(gradient.size() == update_.size());
  if (!is_binary_) {
    for (size_t i = 0; i < update_.size(); ++i) update_[i] -= rate * gradient[i];
    return;
  }
  const float alpha = this->alpha();
  double of_alpha = 0;
  for (size_t i = 0; i < update_.size(); ++i) {
    const float relative = update_[i] / alpha;
    if (std::fabs(relative) > 1) {
      of_alpha += relative > 0 ? gradient[i] : -gradient[i];
    } else {
      of_alpha += gradient[i] * ((positive_[i] ? 2.0f : 0.0f) - (relative + 1));
      update_[i] -= rate * gradient[i];
    }
  }
  const bool clamped = unclamped_alpha() != alpha;
  if (!clamped) exponent_ -= rate * static_cast<float>(of_alpha) * kGrowth * alpha;
}

}  // namespace bitfed
