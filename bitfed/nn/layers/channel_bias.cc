#include "bitfed/nn/layers/channel_bias.h"

#include <cmath>

namespace bitfed {

ChannelBias::ChannelBias(const ImageShape& shape, const std::string& name, size_t fan_in)
    : fan_in_(fan_in), parameter_(name + ".bias", 1, shape.used_channels()), image_sum_(shape.channels) {}

void ChannelBias::initialise(RandomStream random) {
  const double limit = 1 / std::sqrt(static_cast<double>(fan_in_));
  for (size_t c = 0; c < parameter_.count(); ++c)
    parameter_.values.row(0)[c] = static_cast<float>(limit * (2 * random.uniform() - 1));
}

void ChannelBias::add_gradient(const float* of_image, size_t pixels) {
  const size_t channels = image_sum_.size();
  const float one = 1;
  neural_kernels().multiply(
      {&one, 0, 0, of_image, channels, image_sum_.data(), channels, 1, channels, pixels});
  float* gradient = parameter_.gradient.row(0);
  neural_kernels().add(gradient, image_sum_.data(), channels, gradient);
}

}  // namespace bitfed
