#pragma once

#include <cmath>

#include "bitfed/nn/kernels/kernels.h"

namespace bitfed {

struct AdamOptions {
  double rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-7;
};

// Adam's steps (see AdamStep), counted since the moments were 0.
class Adam {
 public:
  explicit Adam(const AdamOptions& options = {}) : options_(options) {}

  const AdamOptions& options() const { return options_; }
  void restart() { power1_ = power2_ = 1; }
  void begin_step() { begin_step(options_.rate); }
  void begin_step(double rate) {
    power1_ *= options_.beta1;
    power2_ *= options_.beta2;
    rate_ = static_cast<float>(rate * std::sqrt(1 - power2_) / (1 - power1_));
  }
  // The step of one tensor; `count` and `bound` as in AdamStep.
  void move(float* parameters, const float* gradient, float* first, float* second, size_t count,
            float bound) const {
    neural_kernels().adam({parameters, gradient, first, second, count, rate_,
                           static_cast<float>(options_.beta1), static_cast<float>(options_.beta2),
                           static_cast<float>(1 - options_.beta1), static_cast<float>(1 - options_.beta2),
                           static_cast<float>(options_.epsilon), bound});
  }

 private:
  AdamOptions options_;
  double power1_ = 1;  // beta1 and beta2 to the number of steps
  double power2_ = 1;
  float rate_ = 0;  // of the present step, with the corrections of both moments
};

}  // namespace bitfed
