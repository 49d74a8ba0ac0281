#pragma once

#include "bitfed/nn/layers/channel_bias.h"
#include "bitfed/nn/layers/layer.h"

namespace bitfed {

// activation(x + bias) and a 2 x 2 max pool in one layer, with the bits of a BiasedActivation and a MaxPool
// in sequence: the values between them are four times as large as the output, and would pass through memory
// several times.
class BiasedPool : public Layer {
 public:
  // The input has no border, and channels padded to kLanes. `name` and `fan_in`: see ChannelBias. Not for
  // kSign.
  BiasedPool(size_t batch, const ImageShape& input, Activation activation, const std::string& name,
             size_t fan_in);

  void forward(const Images& input, size_t images, Pass pass) override;
  // The input must have a gradient.
  void backward(const Images& input, size_t images, Images* input_gradient) override;

 private:
  std::vector<Parameter*> own_parameters() override { return {bias_.parameter()}; }
  void on_initialise(RandomStream random) override { bias_.initialise(random); }
  BiasPool pool(const Images& input, size_t image) const;

  Activation activation_;
  ChannelBias bias_;
};

}  // namespace bitfed
