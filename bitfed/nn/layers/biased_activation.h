#pragma once

#include "bitfed/nn/layers/activation_layer.h"

namespace bitfed {

// activation(x + bias), with a bias for every channel: the parameter NAME.bias. For convolutions without
// batch norm, and hidden dense layers.
class BiasedActivation : public ActivationLayer {
 public:
  // `fan_in`: inputs of a unit of the layer before, from which the bias is initialised.
  BiasedActivation(size_t batch, const ImageShape& input, Activation activation, const std::string& name,
                   size_t fan_in, size_t border = 0);

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;

 private:
  std::vector<Parameter*> own_parameters() override { return {&bias_}; }
  // Uniform within ±1 / sqrt(fan_in), as PyTorch initialises the biases of convolutions and dense layers.
  void on_initialise(RandomStream random) override;

  size_t fan_in_;
  Parameter bias_;
  Floats image_sum_;
};

}  // namespace bitfed
