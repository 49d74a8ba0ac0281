#pragma once

#include "bitfed/nn/norm/norm_parameters.h"

namespace bitfed {

// Batch norm over images and pixels, an activation and a 2 x 2 max pool, in one layer: the values between
// them are four times as large as the output, and would pass through memory several times.
class PooledNorm : public Layer {
 public:
  // `border`: of the output.
  PooledNorm(size_t batch, const ImageShape& input, Activation activation, size_t border,
             const std::string& name);

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;

 private:
  std::vector<Parameter*> own_parameters() override { return norm_.all(); }
  void on_initialise(RandomStream /*random*/) override { norm_.initialise(); }
  NormPool pool(const Images& input, size_t images);

  Activation activation_;
  NormParameters norm_;
  Floats batch_mean_, batch_variance_, inverse_std_;
  Floats factor_, offset_;
  Floats chosen_;                // x of the chosen pixels, for the backward pass
  Floats slope_, slope_offset_;  // in the backward pass, see NormPoolBackward
};

}  // namespace bitfed
