#pragma once

#include "bitfed/base/hash/random.h"
#include "bitfed/nn/layers/images.h"
#include "bitfed/nn/layers/parameter.h"

namespace bitfed {

// A bias for every channel of a layer's output: the parameter NAME.bias.
class ChannelBias {
 public:
  // `fan_in`: inputs of a unit of the layer.
  ChannelBias(const ImageShape& shape, const std::string& name, size_t fan_in);

  // Uniform within ±1 / sqrt(fan_in), as PyTorch initialises the biases of convolutions and dense layers.
  void initialise(RandomStream random);
  const float* values() const { return parameter_.values.row(0); }
  Parameter* parameter() { return &parameter_; }

  // The gradient is summed image by image: float sums over a whole batch would lose digits.
  void begin_gradient() { parameter_.gradient.values.clear(); }
  // One image's, of all its pixels.
  void add_gradient(const float* of_image, size_t pixels);

 private:
  size_t fan_in_;
  Parameter parameter_;
  Floats image_sum_;
};

}  // namespace bitfed
