#pragma once

#include "bitfed/nn/layers/norm_parameters.h"

namespace bitfed {

// Batch norm over images and pixels, an activation, and the largest of every 2 x 2 pixels: together, since
// what stands between them is four times as large as what is left, and would pass through memory several
// times.
class PooledNorm : public Layer {
 public:
  // `border`: of what comes out.
  PooledNorm(size_t batch, const ImageShape& input, Activation activation, size_t border,
             const std::string& name);

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;
  std::vector<Parameter*> parameters() override { return norm_.all(); }
  void start(RandomStream /*random*/) override { norm_.start(); }

 private:
  NormPool pool(const Images& input, size_t images);

  Activation activation_;
  NormParameters norm_;
  Floats batch_mean_, batch_variance_, inverse_deviation_;
  Floats factor_, offset_;
  Floats chosen_;                // pixels, on the way forward
  Floats slope_, slope_offset_;  // of the way back
};

}  // namespace bitfed
