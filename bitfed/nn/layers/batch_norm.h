#pragma once

#include "bitfed/nn/layers/norm_parameters.h"

namespace bitfed {

// Batch norm over images and pixels with scale and shift, then an activation.
class BatchNorm : public Layer {
 public:
  BatchNorm(size_t batch, const ImageShape& input, Activation activation, const std::string& name);

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;
  std::vector<Parameter*> parameters() override { return norm_.all(); }
  void start(RandomStream /*random*/) override { norm_.start(); }

 private:
  Activation activation_;
  NormParameters norm_;
  Floats batch_mean_, batch_variance_, inverse_deviation_;
  Floats factor_, offset_;  // of prediction
};

}  // namespace bitfed
