#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bitfed/base/config.h"
#include "bitfed/data/dataset.h"
#include "bitfed/nn/layers/convolution.h"
#include "bitfed/nn/layers/network.h"
#include "bitfed/nn/rotated/rotated_weights.h"
#include "bitfed/nn/binary/sign_activation.h"

namespace bitfed {

// A convolutional network by name: what a recipe's [model] says and the data adds.
struct NetworkSpec {
  std::string name = "cnn4";
  bool binary = false;        // weights and inputs of convolutions are signs, but for the first's, see below
  bool static_signs = false;  // of a binary one: about running means, and not about those of an image
  uint32_t width = 32;        // channels of the first layer
  uint32_t height = 0;        // of the images
  uint32_t image_width = 0;
  uint32_t channels = 0;
  uint32_t classes = 0;
  std::vector<float> mean;  // a channel's, of pixels from 0 to 1; inputs are (pixel - mean) / deviation
  std::vector<float> deviation;

  bool is_residual() const { return name != "cnn4"; }
  bool operator==(const NetworkSpec&) const = default;
};

inline constexpr size_t kCnn4Blocks = 4;

// The names of all networks, in the order they are shown.
const std::vector<std::string>& network_names();

// The lowest height and width of an image that leaves something to the last layer.
uint32_t least_side(const std::string& name);

// Reads [model] name, width and deploy. An input_error for tables, and for images too small for the network.
NetworkSpec read_network(const Config& recipe, const Dataset& prototype, bool binary);

// The network as it is deployed, its parameters fresh; a real one can be trained as it is.
//   cnn4: four times [convolution 3 x 3, batch norm, ReLU, max pool], each twice as wide as the one before,
//   then a dense layer without bias. Binary: hardtanh for ReLU, the weights are signs, and every convolution
//   but the first takes the signs of its inputs.
//   resnet10, resnet18: see zoo/resnet.h.
Network make_network(const NetworkSpec& spec, size_t batch, const RandomStream& random);

// A binary network while it is trained, with rotated weights. Its deployed() numbers are the parameters of
// the other.
Network make_rotated_network(const NetworkSpec& spec, const RotatedOptions& options, size_t batch,
                             const RandomStream& random);

// What a pixel of a channel is to the network.
inline float input_of(const NetworkSpec& spec, uint8_t pixel, size_t channel) {
  return (static_cast<float>(pixel) / 255.0f - spec.mean[channel]) / spec.deviation[channel];
}

// Puts an image into its place of the batch.
void load_image(const NetworkSpec& spec, std::span<const uint8_t> pixels, size_t place, Network* network);

// A product with a matrix of weights, `inputs` x `outputs`, in so many places of an image: a convolution or a
// dense layer.
struct NetworkProduct {
  std::string weights;  // the tensor's name
  uint64_t inputs;
  uint64_t outputs;
  uint64_t places;
  bool sign_weights;
  bool sign_inputs;

  uint64_t multiply_adds() const { return inputs * outputs * places; }
};

// All of them, in order.
std::vector<NetworkProduct> network_products(const NetworkSpec& spec);

// A tensor of the network's parameters, as a model file has it: all of them, in the order of
// Network::parameters().
struct NetworkTensor {
  std::string name;
  uint64_t rows;
  uint64_t columns;
  bool signs = false;      // a bit each
  bool statistic = false;  // gathered, not learned

  uint64_t count() const { return rows * columns; }
  uint64_t packed_bytes() const { return signs ? (count() + 7) / 8 : sizeof(float) * count(); }
};

std::vector<NetworkTensor> network_tensors(const NetworkSpec& spec);

// Operations of one prediction: real ones by the papers' count, two for each multiply-add of convolutions and
// dense layers (one where the weight is a sign), and one-bit ones where both factors are signs.
struct NetworkOperations {
  uint64_t real = 0;
  uint64_t binary = 0;
};
NetworkOperations operations_of(const NetworkProduct& product);
NetworkOperations network_operations(const NetworkSpec& spec);

// How a network's builder makes its convolutions, with weights as they are deployed, or rotated: the one that
// takes an image's pixels, if it is made so, and the others; and in what form these take signs.
struct Convolutions {
  using Make = std::function<std::unique_ptr<Layer>(
      const ImageShape& input, size_t channels, const std::string& name, const ConvolutionKernel& kernel)>;
  Make of_pixels;
  Make make;
  SignForm signs;
};

// What takes the signs of a binary network's values; `name` is that of the convolution behind it.
std::unique_ptr<SignActivation> make_signs(const NetworkSpec& spec, size_t batch, const ImageShape& input,
                                           SignForm form, const std::string& name);

}  // namespace bitfed
