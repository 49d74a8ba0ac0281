#pragma once

#include "bitfed/nn/layer.h"

namespace bitfed {

// Batch norm over images and pixels with scale and shift, then an activation. Momentum 0.1 and epsilon 1e-5,
// and an unbiased running variance, as PyTorch has them. A batch with a single value a channel leaves the
// running statistics as they are.
class BatchNorm : public Layer {
 public:
  BatchNorm(size_t batch, const ImageShape& input, Activation activation, const std::string& name);

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;
  std::vector<Parameter*> parameters() override { return {&scale_, &shift_, &mean_, &variance_}; }
  void start(RandomStream random) override;

  static constexpr float kEpsilon = 1e-5f;

 private:
  Activation activation_;
  Parameter scale_, shift_, mean_, variance_;
  Images normal_;
  Floats batch_mean_, batch_variance_, inverse_deviation_;
  Floats factor_, offset_;  // of prediction
};

}  // namespace bitfed
