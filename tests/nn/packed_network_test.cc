#include "bitfed/nn/packed_network.h"

#include <gtest/gtest.h>

#include "bitfed/bits/kernels.h"
#include "bitfed/nn/convolution.h"
#include "bitfed/nn/dense.h"
#include "bitfed/nn/network.h"
#include "bitfed/nn/pooled_norm.h"
#include "bitfed/nn/sign_activation.h"

namespace bitfed {
namespace {

constexpr size_t kClasses = 7;

struct Case {
  size_t height, width, channels, filters, blocks;
  bool fresh_norms;  // offsets of 0
};

// The same network as layers.
Network layers_of(const Case& c) {
  ImageShape shape{c.height, c.width, c.channels, 1};
  Network network(1, shape, kClasses);
  for (size_t block = 0; block < c.blocks; ++block) {
    const std::string name = std::to_string(block);
    if (block > 0) network.add(std::make_unique<SignActivation>(1, shape, 1));
    shape.border = 1;
    const size_t filters = c.filters << block;
    network.add(std::make_unique<Convolution>(1, shape, filters, name));
    shape = {shape.height, shape.width, filters, 0};
    network.add(std::make_unique<PooledNorm>(1, shape, Activation::kHardtanh, 0, name + ".norm"));
    shape = {shape.height / 2, shape.width / 2, filters, 0};
  }
  network.add(std::make_unique<Dense>(1, shape, kClasses, "dense"));
  network.start(RandomStream({1, "packed"}));
  return network;
}

void fill(const Case& c, RandomStream* random, Network* network) {
  for (Parameter* parameter : network->parameters()) {
    std::vector<float> numbers = parameter->numbers();
    for (float& number : numbers) {
      const std::string& name = parameter->name;
      const bool norm = name.find("norm") != std::string::npos && !c.fresh_norms;
      if (norm) number = static_cast<float>(random->normal());
      if (name.ends_with("norm.variance")) number = static_cast<float>(90 * (0.2 + random->uniform()));
      if (name.ends_with(".weights") && name != "dense.weights") number = number >= 0 ? 1.0f : -1.0f;
    }
    parameter->assign(numbers);
  }
}

PackedNetwork::Numbers numbers_of(const Case& c, const std::vector<float>& inputs, Network* network) {
  const std::vector<Parameter*> parameters = network->parameters();
  PackedNetwork::Numbers numbers{
      c.height, c.width, c.channels, inputs, {}, kClasses, parameters.back()->numbers()};
  for (size_t i = 0; i + 1 < parameters.size(); i += 5) {
    numbers.blocks.push_back(
        {parameters[i]->numbers(), fold_norm(parameters[i + 1]->numbers(), parameters[i + 2]->numbers(),
                                             parameters[i + 3]->numbers(), parameters[i + 4]->numbers())});
  }
  return numbers;
}

TEST(PackedNetwork, ScoresAreThoseOfTheLayersOnEveryInstructionSet) {
  const std::string before = kernels().name;
  for (const Case& c :
       {Case{32, 32, 3, 32, 4, false}, Case{28, 28, 1, 32, 4, false}, Case{19, 35, 2, 16, 4, false},
        Case{16, 16, 1, 48, 4, true}, Case{9, 8, 3, 16, 2, false}, Case{4, 6, 3, 16, 1, false}}) {
    RandomStream random({5, "packed"});
    Network layers = layers_of(c);
    fill(c, &random, &layers);
    std::vector<float> inputs;
    for (size_t i = 0; i < 256 * c.channels; ++i) inputs.push_back(static_cast<float>(random.normal()));
    const PackedNetwork packed(numbers_of(c, inputs, &layers));
    for (int sample = 0; sample < 3; ++sample) {
      std::vector<uint8_t> pixels;
      for (size_t i = 0; i < c.height * c.width * c.channels; ++i)
        pixels.push_back(static_cast<uint8_t>(random.below(256)));
      force_kernels("scalar");
      for (size_t i = 0; i < pixels.size(); ++i) {
        const size_t row = c.width * c.channels;
        layers.input().row(0, i / row)[i % row] = inputs[256 * (i % c.channels) + pixels[i]];
      }
      layers.predict(1);
      const std::vector<float> expected(layers.logits(0), layers.logits(0) + kClasses);
      for (const Kernels* table : supported_kernels()) {
        force_kernels(table->name);
        PackedNetwork::Workspace workspace = packed.make_workspace();
        std::vector<float> scores(kClasses);
        packed.predict(pixels.data(), &workspace, scores.data());
        EXPECT_EQ(scores, expected) << table->name << " " << c.height << " x " << c.width;
        packed.predict(pixels.data(), &workspace, scores.data());  // nothing is left from before
        EXPECT_EQ(scores, expected) << table->name;
      }
    }
  }
  force_kernels(before);
}

}  // namespace
}  // namespace bitfed
