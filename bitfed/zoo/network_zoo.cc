#include "bitfed/zoo/network_zoo.h"

#include <functional>
#include <map>
#include <memory>

#include "bitfed/base/error.h"
#include "bitfed/nn/batch_norm.h"
#include "bitfed/nn/binary_convolution.h"
#include "bitfed/nn/convolution.h"
#include "bitfed/nn/dense.h"
#include "bitfed/nn/max_pool.h"
#include "bitfed/nn/sign_activation.h"

namespace bitfed {
namespace {

constexpr size_t kBlocks = 4;

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

using MakeConvolution =
    std::function<std::unique_ptr<Layer>(const ImageShape& input, size_t channels, const std::string& name)>;

Network build(const NetworkSpec& spec, size_t batch, const RandomStream& random,
              const MakeConvolution& make_convolution) {
  ImageShape shape{spec.height, spec.image_width, spec.channels, 1};
  Network network(batch, shape, spec.classes);
  for (size_t block = 0; block < kBlocks; ++block) {
    const std::string name = "blocks." + std::to_string(block);
    const size_t channels = size_t{spec.width} << block;
    if (spec.binary && block > 0) {
      network.add(std::make_unique<SignActivation>(batch, shape, 1));
      shape.border = 1;
    }
    network.add(make_convolution(shape, channels, name + ".convolution"));
    shape = {shape.height, shape.width, channels, 0};
    const Activation activation = spec.binary ? Activation::kHardtanh : Activation::kRelu;
    network.add(std::make_unique<BatchNorm>(batch, shape, activation, name + ".norm"));
    const size_t border = spec.binary || block + 1 == kBlocks ? 0 : 1;
    network.add(std::make_unique<MaxPool>(batch, shape, border));
    shape = {shape.height / 2, shape.width / 2, channels, border};
  }
  network.add(std::make_unique<Dense>(batch, shape, spec.classes, "dense"));
  network.start(random);
  return network;
}

}  // namespace

bool is_network(const std::string& model) {
  return model == "cnn4";
}

NetworkSpec read_network(const Config& recipe, const Dataset& prototype, bool binary) {
  const Config model = recipe.section("model");
  const std::vector<std::string> names = {"cnn4"};
  NetworkSpec spec;
  spec.name = model.choice("name", names[0], names);
  spec.binary = binary;
  spec.width = static_cast<uint32_t>(model.integer("width", 32, kLanes, 256));
  if (spec.width % kLanes != 0)
    throw input_error("{}: found {}, expected a multiple of {}", model.where("width"), spec.width, kLanes);
  if (prototype.is_table()) {
    throw input_error("{}: '{}' is a table, and {} needs images", model.where("name"), prototype.name,
                      spec.name);
  }
  if (prototype.height >> kBlocks == 0 || prototype.width >> kBlocks == 0) {
    throw input_error("{}: images of {} x {}, expected at least {} x {} for {} pools of two",
                      model.where("name"), prototype.height, prototype.width, 1 << kBlocks, 1 << kBlocks,
                      kBlocks);
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
  return build(spec, batch, random, [&](const ImageShape& shape, size_t channels, const std::string& name) {
    return std::make_unique<Convolution>(batch, shape, channels, name);
  });
}

Network make_rotated_network(const NetworkSpec& spec, const RotatedOptions& options, size_t batch,
                             const RandomStream& random) {
  return build(spec, batch, random, [&](const ImageShape& shape, size_t channels, const std::string& name) {
    return std::make_unique<BinaryConvolution>(batch, shape, channels, options, name);
  });
}

void load_image(const NetworkSpec& spec, std::span<const uint8_t> pixels, size_t place, Network* network) {
  const size_t row_pixels = size_t{spec.image_width} * spec.channels;
  for (size_t y = 0; y < spec.height; ++y) {
    float* row = network->input().row(place, y);
    for (size_t i = 0; i < row_pixels; ++i)
      row[i] = input_of(spec, pixels[y * row_pixels + i], i % spec.channels);
  }
}

NetworkOperations network_operations(const NetworkSpec& spec) {
  NetworkOperations operations;
  uint64_t height = spec.height;
  uint64_t width = spec.image_width;
  uint64_t channels = spec.channels;
  for (size_t block = 0; block < kBlocks; ++block) {
    const uint64_t out = uint64_t{spec.width} << block;
    const uint64_t multiply_adds = height * width * 9 * channels * out;
    if (!spec.binary) operations.real += 2 * multiply_adds;
    if (spec.binary && block == 0) operations.real += multiply_adds;
    if (spec.binary && block > 0) operations.binary += multiply_adds;
    height /= 2;
    width /= 2;
    channels = out;
  }
  operations.real += 2 * height * width * channels * spec.classes;
  return operations;
}

}  // namespace bitfed
