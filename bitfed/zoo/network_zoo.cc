#include "bitfed/zoo/network_zoo.h"

#include <map>
#include <memory>

#include "bitfed/base/error.h"
#include "bitfed/nn/binary_convolution.h"
#include "bitfed/nn/convolution.h"
#include "bitfed/nn/dense.h"
#include "bitfed/nn/pooled_norm.h"
#include "bitfed/zoo/resnet.h"

namespace bitfed {
namespace {

struct PixelStatistics {
  std::vector<float> mean, deviation;
};

// Of the training sets; CIFAR's are ImageNet's, as the papers take them. Others: the middle of the range.
PixelStatistics pixel_statistics(const Dataset& prototype) {
  static const std::map<std::string, PixelStatistics> kKnown = {
      {"mnist", {{0.1307f}, {0.3081f}}},
      {"fashion-mnist", {{0.2860f}, {0.3530f}}},
      {"svhn", {{0.4496f, 0.4496f, 0.4496f}, {0.1995f, 0.1995f, 0.1995f}}},
      {"cifar10", {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}}},
      {"cifar100", {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}}},
  };
  const auto found = kKnown.find(prototype.name);
  if (found != kKnown.end() && found->second.mean.size() == prototype.channels) return found->second;
  return {std::vector<float>(prototype.channels, 0.5f), std::vector<float>(prototype.channels, 0.5f)};
}

Network make_cnn4(const NetworkSpec& spec, size_t batch, const RandomStream& random,
                  const MakeConvolution& make_convolution) {
  ImageShape shape{spec.height, spec.image_width, spec.channels, 1};
  Network network(batch, shape, spec.classes);
  for (size_t block = 0; block < kCnn4Blocks; ++block) {
    const std::string name = "blocks." + std::to_string(block);
    const size_t channels = size_t{spec.width} << block;
    if (spec.binary && block > 0) {
      network.add(make_signs(spec, batch, shape, name));
      shape.border = 1;
    }
    network.add(make_convolution(shape, channels, name + ".convolution", {}));
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
              const MakeConvolution& make_convolution) {
  return spec.is_residual() ? make_resnet(spec, batch, random, make_convolution)
                            : make_cnn4(spec, batch, random, make_convolution);
}

// Real networks take no signs, and their recipes need not say how.
void read_deployment(const Config& model, NetworkSpec* spec) {
  if (!spec->binary && !model.has("deploy")) return;
  const std::vector<std::string> ways = {"image", "static"};
  spec->static_signs = model.choice("deploy", ways[0], ways) == "static";
  if (spec->static_signs && !spec->binary) {
    throw input_error("{}: found static, expected image for a real network", model.where("deploy"));
  }
}

}  // namespace

const std::vector<std::string>& network_names() {
  static const std::vector<std::string> kNames = {"cnn4", "resnet10", "resnet18"};
  return kNames;
}

uint32_t least_side(const std::string& name) {
  return name == "cnn4" ? 1 << kCnn4Blocks : 1;
}

NetworkSpec read_network(const Config& recipe, const Dataset& prototype, bool binary) {
  const Config model = recipe.section("model");
  NetworkSpec spec;
  spec.name = model.choice("name", network_names()[0], network_names());
  spec.binary = binary;
  spec.width = static_cast<uint32_t>(model.integer("width", spec.name == "cnn4" ? 32 : 64, 1, 256));
  if (binary && spec.width % kLanes != 0) {
    throw input_error("{}: found {}, expected a multiple of {} for a binary network", model.where("width"),
                      spec.width, kLanes);
  }
  read_deployment(model, &spec);
  if (prototype.is_table()) {
    throw input_error("{}: '{}' is a table, and {} needs images", model.where("name"), prototype.name,
                      spec.name);
  }
  const uint32_t least = least_side(spec.name);
  if (prototype.height < least || prototype.width < least) {
    throw input_error("{}: images of {} x {}, expected at least {} x {} for the pools of {}",
                      model.where("name"), prototype.height, prototype.width, least, least, spec.name);
  }
  if (prototype.height > 256 || prototype.width > 256) {
    throw input_error("{}: images of {} x {}, expected at most 256 x 256", model.where("name"),
                      prototype.height, prototype.width);
  }
  spec.height = static_cast<uint32_t>(prototype.height);
  spec.image_width = static_cast<uint32_t>(prototype.width);
  spec.channels = static_cast<uint32_t>(prototype.channels);
  spec.classes = static_cast<uint32_t>(prototype.class_count());
  const PixelStatistics statistics = pixel_statistics(prototype);
  spec.mean = statistics.mean;
  spec.deviation = statistics.deviation;
  return spec;
}

Network make_network(const NetworkSpec& spec, size_t batch, const RandomStream& random) {
  return build(spec, batch, random,
               [&](const ImageShape& shape, size_t channels, const std::string& name,
                   const ConvolutionKernel& kernel) {
                 return std::make_unique<Convolution>(batch, shape, channels, name, kernel);
               });
}

Network make_rotated_network(const NetworkSpec& spec, const RotatedOptions& options, size_t batch,
                             const RandomStream& random) {
  return build(spec, batch, random,
               [&](const ImageShape& shape, size_t channels, const std::string& name,
                   const ConvolutionKernel& kernel) -> std::unique_ptr<Layer> {
                 const bool takes_pixels = shape.channels == spec.channels;
                 if (takes_pixels) {
                   return std::make_unique<BinaryWeightConvolution>(batch, shape, channels, options, name,
                                                                    kernel);
                 }
                 return std::make_unique<BinaryConvolution>(batch, shape, channels, options, name, kernel);
               });
}

std::unique_ptr<SignActivation> make_signs(const NetworkSpec& spec, size_t batch, const ImageShape& input,
                                           const std::string& name) {
  if (!spec.static_signs) return std::make_unique<SignActivation>(batch, input, 1);
  return std::make_unique<SignActivation>(batch, input, 1, name + ".signs");
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
