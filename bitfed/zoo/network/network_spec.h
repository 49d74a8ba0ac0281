#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bitfed {

// What the shortcuts of residual blocks lead around: both convolutions of a block, or each of them.
enum class Shortcuts { kBlock, kConvolution };

// A network by name: what a recipe's [model] says and the data adds. Everything else about the network
// follows from it: see architecture_of().
struct NetworkSpec {
  std::string name = "cnn4";
  bool binary = false;              // weights and inputs of convolutions are signs, but for the first layer's
  bool static_signs = false;        // binary only: signs about running means instead of each image's own mean
  uint32_t width = 32;              // channels of the first layer; unused by "custom"
  std::vector<std::string> layers;  // of "custom": see zoo/architectures/custom.cc
  Shortcuts shortcuts = Shortcuts::kBlock;
  uint32_t height = 0;  // of the images
  uint32_t image_width = 0;
  uint32_t channels = 0;
  uint32_t classes = 0;
  std::vector<float> mean;  // per channel, of pixels from 0 to 1; inputs are (pixel - mean) / deviation
  std::vector<float> deviation;

  bool operator==(const NetworkSpec&) const = default;
};

// The network's input for a pixel of a channel.
inline float input_of(const NetworkSpec& spec, uint8_t pixel, size_t channel) {
  return (static_cast<float>(pixel) / 255.0f - spec.mean[channel]) / spec.deviation[channel];
}

}  // namespace bitfed
