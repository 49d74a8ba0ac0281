#pragma once

#include "bitfed/nn/norm/norm_parameters.h"

namespace bitfed {

// Batch norm over images and pixels with scale and shift, then an activation.
class BatchNorm : public Layer {
 public:
  BatchNorm(size_t batch, const ImageShape& input, Activation activation, const std::string& name);

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;

 private:
  std::vector<Parameter*> own_parameters() override { return norm_.all(); }
  void on_initialise(RandomStream /*random*/) override { norm_.initialise(); }
  Activation activation_;
  NormParameters norm_;
  Floats batch_mean_, batch_variance_, inverse_std_;
  Floats factor_, offset_;  // in prediction
};

}  // namespace bitfed
