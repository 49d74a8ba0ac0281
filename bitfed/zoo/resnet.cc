#include "bitfed/zoo/resnet.h"

#include "bitfed/nn/layers/average_pool.h"
#include "bitfed/nn/layers/batch_norm.h"
#include "bitfed/nn/layers/border.h"
#include "bitfed/nn/layers/dense.h"
#include "bitfed/nn/layers/residual_block.h"

namespace bitfed {
namespace {

constexpr size_t kStages = 4;

class Builder {
 public:
  Builder(const NetworkSpec& spec, size_t batch, const Convolutions& convolutions)
      : spec_(spec),
        batch_(batch),
        convolutions_(convolutions),
        activation_(spec.binary ? Activation::kHardtanh : Activation::kRelu) {}

  Network build(const RandomStream& random) {
    const ImageShape input{spec_.height, spec_.image_width, spec_.channels, 1};
    Network network(batch_, input, spec_.classes);
    network.add(std::make_unique<Convolution>(batch_, input, spec_.width, "stem"));
    ImageShape shape = shape_of_lanes(spec_.height, spec_.image_width, spec_.width, 0);
    network.add(std::make_unique<BatchNorm>(batch_, shape, activation_, "stem.norm"));
    for (const ResnetBlock& block : resnet_blocks(spec_)) network.add(residual(block, &shape));
    network.add(std::make_unique<AveragePool>(batch_, shape));
    shape = {1, 1, shape.channels, 0, shape.idle_channels};
    network.add(std::make_unique<BatchNorm>(batch_, shape, Activation::kNone, "norm"));
    network.add(std::make_unique<Dense>(batch_, shape, spec_.classes, "dense", Bias::kLearned));
    network.start(random);
    return network;
  }

 private:
  // Brings images to a convolution: with a border, and of a binary network their signs.
  std::unique_ptr<Layer> entry(const ImageShape& shape, const std::string& name) const {
    if (spec_.binary) return make_signs(spec_, batch_, shape, convolutions_.signs, name);
    return std::make_unique<Border>(batch_, shape, 1);
  }

  // A convolution of images with a border, and batch norm.
  void add_convolution(const ImageShape& input, const ImageShape& output, const ConvolutionKernel& kernel,
                       Activation activation, const std::string& name, Sequence* path) const {
    path->add(convolutions_.make(input, output.used_channels(), name + ".convolution", kernel));
    path->add(std::make_unique<BatchNorm>(batch_, output, activation, name + ".norm"));
  }

  std::unique_ptr<Layer> residual(const ResnetBlock& block, ImageShape* shape) const {
    const ConvolutionKernel kernel{3, block.stride};
    const ImageShape in = shape->with_border(1);
    const ImageShape out = shape_of_lanes(kernel.steps(in.height), kernel.steps(in.width), block.out, 0);
    Sequence path;
    add_convolution(in, out, kernel, activation_, block.name + ".first", &path);
    path.add(entry(out, block.name + ".second"));
    add_convolution(out.with_border(1), out, {3, 1}, Activation::kNone, block.name + ".second", &path);
    Sequence shortcut;
    if (block.has_shortcut())
      add_convolution(in, out, {1, block.stride}, Activation::kNone, block.name + ".shortcut", &shortcut);
    *shape = out;
    return std::make_unique<ResidualBlock>(batch_, out, activation_,
                                           entry(in.without_border(), block.name + ".first"), std::move(path),
                                           std::move(shortcut));
  }

  const NetworkSpec& spec_;
  size_t batch_;
  const Convolutions& convolutions_;
  Activation activation_;
};

}  // namespace

std::vector<ResnetBlock> resnet_blocks(const NetworkSpec& spec) {
  const size_t a_stage = spec.name == "resnet10" ? 1 : 2;
  std::vector<ResnetBlock> blocks;
  size_t channels = spec.width;
  for (size_t i = 0; i < kStages * a_stage; ++i) {
    const size_t stage = i / a_stage;
    const size_t out = size_t{spec.width} << stage;
    const size_t stride = stage > 0 && i % a_stage == 0 ? 2 : 1;
    blocks.push_back({"blocks." + std::to_string(i), channels, out, stride});
    channels = out;
  }
  return blocks;
}

Network make_resnet(const NetworkSpec& spec, size_t batch, const RandomStream& random,
                    const Convolutions& convolutions) {
  return Builder(spec, batch, convolutions).build(random);
}

std::vector<NetworkProduct> resnet_products(const NetworkSpec& spec) {
  uint64_t height = spec.height;
  uint64_t width = spec.image_width;
  std::vector<NetworkProduct> products = {
      {"stem.weights", 9 * spec.channels, spec.width, height * width, false, false}};
  const bool signs = spec.binary;
  for (const ResnetBlock& block : resnet_blocks(spec)) {
    const ConvolutionKernel kernel{3, block.stride};
    height = kernel.steps(height);
    width = kernel.steps(width);
    const auto add = [&](const char* name, uint64_t inputs) {
      products.push_back(
          {block.name + name + ".convolution.weights", inputs, block.out, height * width, signs, signs});
    };
    add(".first", 9 * block.in);
    add(".second", 9 * block.out);
    if (block.has_shortcut()) add(".shortcut", block.in);
  }
  products.push_back({"dense.weights", products.back().outputs, spec.classes, 1, false, false});
  return products;
}

}  // namespace bitfed
