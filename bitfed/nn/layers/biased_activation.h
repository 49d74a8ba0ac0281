#pragma once

#include "bitfed/nn/layers/activation_layer.h"
#include "bitfed/nn/layers/channel_bias.h"

namespace bitfed {

// activation(x + bias). For convolutions without batch norm, and hidden dense layers.
class BiasedActivation : public ActivationLayer {
 public:
  // `name` and `fan_in`: see ChannelBias.
  BiasedActivation(size_t batch, const ImageShape& input, Activation activation, const std::string& name,
                   size_t fan_in, size_t border = 0);

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;

 private:
  std::vector<Parameter*> own_parameters() override { return {bias_.parameter()}; }
  void on_initialise(RandomStream random) override { bias_.initialise(random); }

  ChannelBias bias_;
};

}  // namespace bitfed
