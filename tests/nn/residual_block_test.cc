#include "bitfed/nn/layers/residual_block.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bitfed/bits/kernels.h"
#include "bitfed/nn/convolution/convolution.h"
#include "bitfed/nn/layers/activation_layer.h"
#include "bitfed/nn/layers/average_pool.h"
#include "bitfed/nn/layers/border.h"
#include "bitfed/nn/layers/dense.h"
#include "bitfed/nn/layers/network.h"
#include "bitfed/nn/norm/batch_norm.h"
#include "tests/nn/layer_gradients.h"
#include "tests/nn/plain_layers.h"

namespace bitfed {
namespace {

struct Case {
  size_t batch, height, width, channels, classes;
  Activation activation;
};

constexpr size_t kFirst = 16;   // channels of the stem and the first block
constexpr size_t kSecond = 32;  // of the second, which has a shortcut and stride 2

void add_convolution(const Case& c, const ImageShape& input, const ImageShape& output,
                     const ConvolutionKernel& kernel, Activation activation, const std::string& name,
                     Sequence* path) {
  path->add(std::make_unique<Convolution>(c.batch, input, output.channels, name, kernel));
  path->add(std::make_unique<BatchNorm>(c.batch, output, activation, name + ".norm"));
}

std::unique_ptr<Layer> make_block(const Case& c, const ImageShape& in, size_t stride, size_t channels,
                                  const std::string& name) {
  const ConvolutionKernel kernel{3, stride};
  const ImageShape out{kernel.steps(in.height), kernel.steps(in.width), channels, 0};
  const ImageShape bordered{in.height, in.width, in.channels, 1};
  Sequence path;
  add_convolution(c, bordered, out, kernel, c.activation, name + ".a", &path);
  path.add(std::make_unique<Border>(c.batch, out, 1));
  add_convolution(c, {out.height, out.width, channels, 1}, out, {3, 1}, Activation::kNone, name + ".b",
                  &path);
  std::optional<AddingSequence> shortcut;
  if (stride > 1) {
    shortcut.emplace(std::make_unique<Convolution>(c.batch, bordered, channels, name + ".c",
                                                   ConvolutionKernel{1, stride}));
    shortcut->add(std::make_unique<BatchNorm>(c.batch, out, Activation::kNone, name + ".c.norm"));
  }
  return std::make_unique<ResidualBlock>(c.batch, out, c.activation, std::make_unique<Border>(c.batch, in, 1),
                                         std::move(path), std::move(shortcut));
}

// Stem, a block with the identity, one with a shortcut, mean, norm, dense with bias.
Network make_network(const Case& c) {
  const ImageShape input{c.height, c.width, c.channels, 1};
  Network network(c.batch, input, c.classes);
  const ImageShape first{c.height, c.width, kFirst, 0};
  const ImageShape second{(c.height + 1) / 2, (c.width + 1) / 2, kSecond, 0};
  network.add(std::make_unique<Convolution>(c.batch, input, kFirst, "stem"));
  network.add(std::make_unique<BatchNorm>(c.batch, first, c.activation, "stem.norm"));
  network.add(make_block(c, first, 1, kFirst, "one"));
  network.add(make_block(c, first, 2, kSecond, "two"));
  network.add(std::make_unique<AveragePool>(c.batch, second));
  network.add(std::make_unique<BatchNorm>(c.batch, ImageShape{1, 1, kSecond, 0}, Activation::kNone, "norm"));
  network.add(
      std::make_unique<Dense>(c.batch, ImageShape{1, 1, kSecond, 0}, c.classes, "dense", Bias::kLearned));
  network.initialise(RandomStream({21, "network"}));
  return network;
}

std::vector<uint16_t> fill(const Case& c, Network* network) {
  RandomStream random({22, "images"});
  std::vector<uint16_t> labels;
  for (size_t i = 0; i < c.batch; ++i) {
    for (size_t y = 0; y < c.height; ++y) {
      for (size_t k = 0; k < c.width * c.channels; ++k)
        network->input().row(i, y)[k] = static_cast<float>(random.normal());
    }
    labels.push_back(static_cast<uint16_t>(random.below(static_cast<uint32_t>(c.classes))));
  }
  return labels;
}

// Reads the parameters one by one, in the network's order: a convolution and its norm are five of them.
class Plain {
 public:
  Plain(const Case& c, const std::vector<plain::Values>& parameters) : c_(c), parameters_(parameters) {}

  double loss(Network& network, const std::vector<uint16_t>& labels) {
    plain::Batch x = activate(convolution(plain::batch_of(network.input(), c_.batch), kFirst, 3, 1));
    x = block(x, kFirst, 1);
    x = plain::mean_of_pixels(block(x, kSecond, 2));
    x = plain::normalise(x, parameters_[at_], parameters_[at_ + 1]);
    at_ += 4;
    return plain::loss(x, parameters_[at_], padded(c_.classes), parameters_[at_ + 1], c_.classes, labels);
  }

 private:
  plain::Batch convolution(const plain::Batch& x, size_t out, size_t side, size_t stride) {
    const plain::Batch y = plain::convolve(x, parameters_[at_], out, {side, stride});
    at_ += 5;
    return plain::normalise(y, parameters_[at_ - 4], parameters_[at_ - 3]);
  }
  plain::Batch activate(const plain::Batch& x) const {
    return c_.activation == Activation::kRelu ? plain::clip(x, 0, 1e300) : plain::clip(x, -1, 1);
  }
  plain::Batch block(const plain::Batch& x, size_t out, size_t stride) {
    plain::Batch y = activate(convolution(x, out, 3, stride));
    y = convolution(y, out, 3, 1);
    return activate(plain::add(y, stride > 1 ? convolution(x, out, 1, stride) : x));
  }

  const Case& c_;
  const std::vector<plain::Values>& parameters_;
  size_t at_ = 0;
};

const Case kCases[] = {{3, 6, 6, 3, 4, Activation::kRelu},
                       {4, 7, 5, 1, 10, Activation::kHardtanh},
                       {2, 3, 8, 2, 3, Activation::kRelu}};

TEST(ResidualBlockTest, GradientsAgreeWithCentralDifferences) {
  for (const Case& c : kCases) {
    Network network = make_network(c);
    const std::vector<uint16_t> labels = fill(c, &network);
    std::vector<plain::Values> values;
    for (const Parameter* parameter : network.parameters()) {
      const Floats& floats = parameter->values.values;
      values.emplace_back(floats.data(), floats.data() + floats.size());
    }
    const float loss = network.differentiate(labels);
    EXPECT_NEAR(loss, Plain(c, values).loss(network, labels), 1e-4);
    RandomStream random({23, "which"});
    for (size_t p = 0; p < values.size(); ++p) {
      const Parameter& parameter = *network.parameters()[p];
      if (parameter.statistic) continue;
      for (int trial = 0; trial < 8; ++trial) {
        const size_t row = random.below(static_cast<uint32_t>(parameter.values.rows));
        const size_t column = random.below(static_cast<uint32_t>(parameter.values.columns));
        const size_t i = row * parameter.values.stride + column;
        const auto at = [&](double change) {
          std::vector<plain::Values> moved = values;
          moved[p][i] += change;
          return Plain(c, moved).loss(network, labels);
        };
        const double expected = (at(1e-6) - at(-1e-6)) / 2e-6;
        EXPECT_NEAR(parameter.gradient.values[i], expected, 1e-3 * std::max(0.05, std::fabs(expected)))
            << parameter.name << " " << row << " " << column;
      }
    }
  }
}

TEST(ResidualBlockTest, SameBitsOnEveryInstructionSet) {
  const std::string before = kernels().name;
  for (const Case& c : kCases) {
    std::vector<std::vector<std::vector<float>>> results;
    for (const Kernels* table : supported_kernels()) {
      force_kernels(table->name);
      Network network = make_network(c);
      const std::vector<uint16_t> labels = fill(c, &network);
      for (int step = 0; step < 3; ++step) {
        network.differentiate(labels);
        network.descend({.rate = 0.1f});
      }
      auto& result = results.emplace_back();
      for (const Parameter* parameter : network.parameters()) result.push_back(parameter->to_vector());
    }
    for (const auto& result : results) EXPECT_EQ(result, results.front());
  }
  force_kernels(before);
}

Sequence convolution_path(size_t batch, const ImageShape& input, const char* name, Activation activation) {
  Sequence path;
  path.add(std::make_unique<Convolution>(batch, input.with_border(1), input.channels, name));
  path.add(std::make_unique<ActivationLayer>(batch, input, activation));
  return path;
}

// What stands at the end of a path must leave the gradient to the shortcut as it is: an activation, and a
// block inside another.
TEST(ResidualBlockTest, PathsThatEndWithAnActivationOrABlock) {
  const ImageShape shape{3, 2, 16, 0};
  const auto border = [&] { return std::make_unique<Border>(2, shape, 1); };
  for (const bool has_shortcut : {false, true}) {
    Sequence path = convolution_path(2, shape, "outer", Activation::kHardtanh);
    path.add(std::make_unique<ResidualBlock>(2, shape, Activation::kRelu, border(),
                                             convolution_path(2, shape, "inner", Activation::kRelu)));
    std::optional<AddingSequence> shortcut;
    if (has_shortcut) {
      shortcut.emplace(
          std::make_unique<Convolution>(2, shape.with_border(1), 16, "shortcut", ConvolutionKernel{1, 1}));
    }
    ResidualBlock block(2, shape, Activation::kNone, border(), std::move(path), std::move(shortcut));
    block.initialise(RandomStream({31, "block"}));
    Images input(2, shape);
    fill_normal(4, &input);
    expect_gradients(&block, &input, 2);
  }
}

// Counts what reaches it, and keeps the streams that it gets.
class Probe : public AddingLayer {
 public:
  explicit Probe(const std::string& name) : AddingLayer(1, ImageShape{1, 1, 16, 0}), parameter(name, 1, 1) {}

  void forward(const Images&, size_t, Pass) override {}
  void backward(const Images&, size_t, Images*) override {}
  void backward_adding(const Images&, size_t, const Images&, Images*) override {}

  Parameter parameter;
  std::vector<std::string> heard;
  uint32_t initial = 0;
  uint32_t seeded = 0;

 private:
  void on_initialise(RandomStream random) override {
    heard.emplace_back("initialise");
    initial = random.next_u32();
  }
  void on_seed(const RandomStream& random) override {
    heard.emplace_back("seed");
    seeded = RandomStream(random).next_u32();
  }
  void on_set_anchor() override { heard.emplace_back("set_anchor"); }
  void on_begin_epoch(double progress) override {
    heard.push_back("begin_epoch " + std::to_string(progress));
  }
  void on_fuse() override { heard.emplace_back("fuse"); }
  std::vector<Parameter*> own_parameters() override { return {&parameter}; }
};

TEST(ResidualBlockTest, EveryHookReachesEntryPathAndShortcut) {
  auto entry = std::make_unique<Probe>("entry");
  auto path = std::make_unique<Probe>("path");
  auto first = std::make_unique<Probe>("first");
  auto second = std::make_unique<Probe>("second");
  auto behind = std::make_unique<Probe>("behind");
  const std::vector<Probe*> probes = {entry.get(), path.get(), first.get(), second.get(), behind.get()};
  Sequence of_path;
  of_path.add(std::move(path));
  AddingSequence shortcut(std::move(first));
  shortcut.add(std::move(second));
  const ImageShape shape{1, 1, 16, 0};
  Network network(1, shape, 2);
  network.add(std::make_unique<ResidualBlock>(1, shape, Activation::kRelu, std::move(entry),
                                              std::move(of_path), std::move(shortcut)));
  network.add(std::move(behind));
  const RandomStream random({1, "network"});
  network.initialise(random);
  network.seed(random);
  network.set_anchor();
  network.begin_epoch(0.5);
  network.fuse();
  const std::vector<std::string> all = {"initialise", "seed", "set_anchor", "begin_epoch 0.500000", "fuse"};
  ASSERT_EQ(network.parameters().size(), probes.size());
  EXPECT_EQ(network.deployed().size(), probes.size());
  const RandomStream block = random.substream(0);
  const std::vector<RandomStream> streams = {block.substream(2), block.substream(0).substream(0),
                                             block.substream(1).substream(0), block.substream(1).substream(1),
                                             random.substream(1)};
  for (size_t i = 0; i < probes.size(); ++i) {
    EXPECT_EQ(probes[i]->heard, all) << probes[i]->parameter.name;
    EXPECT_EQ(network.parameters()[i], &probes[i]->parameter);
    EXPECT_EQ(probes[i]->initial, RandomStream(streams[i]).next_u32());
    EXPECT_EQ(probes[i]->seeded, probes[i]->initial);
  }
}

// One image: batch norm over features sees one value each, which is its own mean. What is behind the norm
// learns, what is before it gets no gradient, and the running statistics stay.
TEST(ResidualBlockTest, ABatchOfOne) {
  Case c = kCases[0];
  c.batch = 1;
  Network network = make_network(c);
  const std::vector<uint16_t> labels = fill(c, &network);
  EXPECT_NEAR(network.differentiate(labels), std::log(4.0), 0.5);
  for (const Parameter* parameter : network.parameters()) {
    float most = 0;
    for (size_t i = 0; !parameter->statistic && i < parameter->gradient.values.size(); ++i)
      most = std::max(most, std::fabs(parameter->gradient.values[i]));
    const bool behind = parameter->name == "norm.shift" || parameter->name == "dense.bias";
    EXPECT_EQ(most > 0, behind) << parameter->name;  // the dense weights meet a shift of 0
    if (parameter->name == "norm.mean") {
      EXPECT_EQ(parameter->to_vector(), std::vector<float>(kSecond, 0));
    }
  }
}

}  // namespace
}  // namespace bitfed
