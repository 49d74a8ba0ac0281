#include "bitfed/zoo/network_zoo.h"

#include <memory>

#include "bitfed/nn/binary/binary_convolution.h"
#include "bitfed/nn/layers/convolution.h"
#include "bitfed/nn/layers/dense.h"
#include "bitfed/nn/layers/pooled_norm.h"
#include "bitfed/zoo/resnet.h"

namespace bitfed {
namespace {

Network make_cnn4(const NetworkSpec& spec, size_t batch, const RandomStream& random,
                  const Convolutions& convolutions) {
  ImageShape shape{spec.height, spec.image_width, spec.channels, 1};
  Network network(batch, shape, spec.classes);
  for (size_t block = 0; block < kCnn4Blocks; ++block) {
    const std::string name = "blocks." + std::to_string(block);
    const size_t channels = size_t{spec.width} << block;
    if (spec.binary && block > 0) {
      network.add(make_signs(spec, batch, shape, convolutions.signs, name));
      shape.border = 1;
    }
    const Convolutions::Make& make = block == 0 ? convolutions.of_pixels : convolutions.make;
    network.add(make(shape, channels, name + ".convolution", {}));
    shape = shape_of_lanes(shape.height, shape.width, channels, 0);
    const Activation activation = spec.binary ? Activation::kHardtanh : Activation::kRelu;
    const size_t border = spec.binary || block + 1 == kCnn4Blocks ? 0 : 1;
    network.add(std::make_unique<PooledNorm>(batch, shape, activation, border, name + ".norm"));
    shape = shape_of_lanes(shape.height / 2, shape.width / 2, channels, border);
  }
  network.add(std::make_unique<Dense>(batch, shape, spec.classes, "dense"));
  network.start(random);
  return network;
}

std::vector<NetworkProduct> cnn4_products(const NetworkSpec& spec) {
  std::vector<NetworkProduct> products;
  uint64_t height = spec.height;
  uint64_t width = spec.image_width;
  uint64_t channels = spec.channels;
  for (size_t block = 0; block < kCnn4Blocks; ++block) {
    const uint64_t out = uint64_t{spec.width} << block;
    products.push_back({"blocks." + std::to_string(block) + ".convolution.weights", 9 * channels, out,
                        height * width, spec.binary, spec.binary && block > 0});
    height /= 2;
    width /= 2;
    channels = out;
  }
  products.push_back({"dense.weights", height * width * channels, spec.classes, 1, false, false});
  return products;
}

Network build(const NetworkSpec& spec, size_t batch, const RandomStream& random,
              const Convolutions& convolutions) {
  return spec.is_residual() ? make_resnet(spec, batch, random, convolutions)
                            : make_cnn4(spec, batch, random, convolutions);
}

}  // namespace

const std::vector<std::string>& network_names() {
  static const std::vector<std::string> kNames = {"cnn4", "resnet10", "resnet18"};
  return kNames;
}

uint32_t least_side(const std::string& name) {
  return name == "cnn4" ? 1 << kCnn4Blocks : 1;
}

Network make_network(const NetworkSpec& spec, size_t batch, const RandomStream& random) {
  const auto make = [&](const ImageShape& shape, size_t channels, const std::string& name,
                        const ConvolutionKernel& kernel) {
    return std::make_unique<Convolution>(batch, shape, channels, name, kernel);
  };
  return build(spec, batch, random, {make, make, SignForm::kFloats});
}

Network make_rotated_network(const NetworkSpec& spec, const RotatedOptions& options, size_t batch,
                             const RandomStream& random) {
  const auto of_pixels = [&](const ImageShape& shape, size_t channels, const std::string& name,
                             const ConvolutionKernel& kernel) {
    return std::make_unique<BinaryWeightConvolution>(batch, shape, channels, options, name, kernel);
  };
  const auto of_signs = [&](const ImageShape& shape, size_t channels, const std::string& name,
                            const ConvolutionKernel& kernel) {
    return std::make_unique<BinaryConvolution>(batch, shape, channels, options, name, kernel);
  };
  return build(spec, batch, random, {of_pixels, of_signs, SignForm::kBits});
}

std::unique_ptr<SignActivation> make_signs(const NetworkSpec& spec, size_t batch, const ImageShape& input,
                                           SignForm form, const std::string& name) {
  if (!spec.static_signs) return std::make_unique<SignActivation>(batch, input, form);
  return std::make_unique<SignActivation>(batch, input, form, name + ".signs");
}

void load_image(const NetworkSpec& spec, std::span<const uint8_t> pixels, size_t place, Network* network) {
  const size_t row_pixels = size_t{spec.image_width} * spec.channels;
  for (size_t y = 0; y < spec.height; ++y) {
    float* row = network->input().row(place, y);
    for (size_t i = 0; i < row_pixels; ++i)
      row[i] = input_of(spec, pixels[y * row_pixels + i], i % spec.channels);
  }
}

std::vector<NetworkProduct> network_products(const NetworkSpec& spec) {
  return spec.is_residual() ? resnet_products(spec) : cnn4_products(spec);
}

std::vector<NetworkTensor> network_tensors(const NetworkSpec& spec) {
  std::vector<NetworkTensor> tensors;
  const auto add_norm = [&](const std::string& name, uint64_t channels) {
    for (const char* learned : {"scale", "shift"}) tensors.push_back({name + learned, 1, channels});
    for (const char* gathered : {"mean", "variance"})
      tensors.push_back({name + gathered, 1, channels, false, true});
  };
  for (const NetworkProduct& product : network_products(spec)) {
    const bool dense = product.weights == "dense.weights";
    if (dense && spec.is_residual()) add_norm("norm.", product.inputs);
    std::string name = product.weights.substr(0, product.weights.rfind('.'));
    if (name.ends_with(".convolution")) name.resize(name.rfind('.'));
    if (spec.static_signs && product.sign_inputs && !name.ends_with(".shortcut"))
      tensors.push_back({name + ".signs.mean", 1, 1, false, true});
    tensors.push_back({product.weights, product.inputs, product.outputs, product.sign_weights});
    if (!dense) add_norm(name + ".norm.", product.outputs);
  }
  if (spec.is_residual()) tensors.push_back({"dense.bias", 1, spec.classes});
  return tensors;
}

NetworkOperations operations_of(const NetworkProduct& product) {
  if (product.sign_weights && product.sign_inputs) return {.real = 0, .binary = product.multiply_adds()};
  return {.real = (product.sign_weights ? 1 : 2) * product.multiply_adds(), .binary = 0};
}

NetworkOperations network_operations(const NetworkSpec& spec) {
  NetworkOperations all;
  for (const NetworkProduct& product : network_products(spec)) {
    const NetworkOperations operations = operations_of(product);
    all.real += operations.real;
    all.binary += operations.binary;
  }
  return all;
}

}  // namespace bitfed
