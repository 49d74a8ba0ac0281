#include "bitfed/zoo/network/packed_builder.h"

#include <gtest/gtest.h>

#include "bitfed/bits/kernels.h"
#include "bitfed/zoo/network/network_model.h"

namespace bitfed {
namespace {

NetworkSpec spec_of(const char* name, uint32_t height, uint32_t width, uint32_t channels, uint32_t filters) {
  NetworkSpec spec;
  spec.name = name;
  spec.binary = true;
  spec.width = filters;
  spec.height = height;
  spec.image_width = width;
  spec.channels = channels;
  spec.classes = 7;
  for (uint32_t c = 0; c < channels; ++c) {
    spec.mean.push_back(0.3f + 0.1f * static_cast<float>(c));
    spec.deviation.push_back(0.2f + 0.1f * static_cast<float>(c));
  }
  return spec;
}

// Signs, and norms with factors of both signs, none of them 1 or 0; fresh norms have offsets of 0.
void fill(bool fresh_norms, RandomStream* random, Network* network) {
  for (Parameter* parameter : network->parameters()) {
    std::vector<float> numbers = parameter->to_vector();
    const std::string& name = parameter->name;
    for (float& number : numbers) {
      if (name.ends_with(".convolution.weights")) number = number >= 0 ? 1.0f : -1.0f;
      if (name.ends_with(".signs.mean")) number = static_cast<float>(0.7 * random->normal());
      if (name.find("norm.") == std::string::npos || fresh_norms) continue;
      number = static_cast<float>(random->normal());
      const bool signs_before = name.find("blocks.") != std::string::npos;
      const double square = signs_before ? 90 : 1;
      if (name.ends_with(".variance")) number = static_cast<float>(square * (0.2 + random->uniform()));
    }
    parameter->assign(numbers);
  }
}

Dataset random_images(const NetworkSpec& spec, size_t count, RandomStream* random) {
  Dataset data;
  data.height = spec.height;
  data.width = spec.image_width;
  data.channels = spec.channels;
  for (size_t i = 0; i < count * data.image_bytes(); ++i)
    data.pixels.push_back(static_cast<uint8_t>(random->below(256)));
  data.labels.resize(count);
  return data;
}

// The layers in plain loops, of signs as floats, and the bits on every instruction set.
void expect_scores_of_the_layers(const NetworkSpec& spec, bool fresh_norms) {
  constexpr size_t kImages = 3;
  RandomStream random({5, "packed"});
  Network layers = make_network(spec, kImages, RandomStream({1, "packed"}));
  fill(fresh_norms, &random, &layers);
  const NetworkModel model(spec, parameters_of(layers));
  const Dataset data = random_images(spec, kImages, &random);
  const std::string before = kernels().name;
  force_kernels("scalar");
  for (size_t i = 0; i < kImages; ++i) load_image(spec, data.image(i), i, &layers);
  layers.predict(kImages);
  std::vector<float> expected;
  for (size_t i = 0; i < kImages; ++i)
    expected.insert(expected.end(), layers.logits(i), layers.logits(i) + spec.classes);
  ThreadPool pool(1);
  for (const Kernels* table : supported_kernels()) {
    force_kernels(table->name);
    EXPECT_EQ(model.scores(data, pool), expected)
        << table->name << " " << spec.name << " " << spec.height << " x " << spec.image_width;
  }
  force_kernels(before);
}

TEST(PackedBuilder, Cnn4HasTheScoresOfItsLayers) {
  expect_scores_of_the_layers(spec_of("cnn4", 32, 32, 3, 32), false);
  expect_scores_of_the_layers(spec_of("cnn4", 28, 28, 1, 32), false);
  expect_scores_of_the_layers(spec_of("cnn4", 19, 35, 2, 16), false);
  expect_scores_of_the_layers(spec_of("cnn4", 16, 16, 1, 48), true);
}

TEST(PackedBuilder, ResnetsHaveTheScoresOfTheirLayers) {
  expect_scores_of_the_layers(spec_of("resnet10", 32, 32, 3, 16), false);
  expect_scores_of_the_layers(spec_of("resnet10", 7, 9, 1, 32), false);  // pixels that do not fill fours
  expect_scores_of_the_layers(spec_of("resnet10", 1, 1, 2, 16), false);
  expect_scores_of_the_layers(spec_of("resnet10", 6, 5, 16, 16), true);
  expect_scores_of_the_layers(spec_of("resnet18", 11, 8, 3, 48), false);
}

// Means below -1 and above 1 leave one sign alone, and thresholds that every sum and none reaches.
TEST(PackedBuilder, StaticSigns) {
  for (NetworkSpec spec :
       {spec_of("cnn4", 19, 21, 3, 32), spec_of("cnn4", 16, 17, 1, 48), spec_of("resnet10", 9, 8, 3, 32),
        spec_of("resnet10", 5, 7, 1, 16), spec_of("resnet18", 6, 6, 2, 16)}) {
    spec.static_signs = true;
    expect_scores_of_the_layers(spec, false);
  }
}

TEST(PackedBuilder, ShortcutsAroundEachConvolution) {
  for (NetworkSpec spec : {spec_of("resnet10", 32, 32, 3, 16), spec_of("resnet10", 7, 9, 1, 32),
                           spec_of("resnet10", 1, 1, 2, 16), spec_of("resnet18", 11, 8, 3, 48)}) {
    spec.shortcuts = Shortcuts::kConvolution;
    expect_scores_of_the_layers(spec, false);
    spec.static_signs = true;
    expect_scores_of_the_layers(spec, false);
  }
}

// What is written down, in order, is what a network has.
TEST(NetworkTensors, AreTheParameters) {
  for (const std::string& name : std::vector<std::string>{"cnn4", "resnet10", "resnet18"}) {
    for (const int kind : {0, 1, 2}) {
      const bool binary = kind > 0;
      NetworkSpec spec = spec_of(name.c_str(), 20, 17, 3, 16);
      spec.binary = binary;
      spec.static_signs = kind == 2;
      Network network = make_network(spec, 1, RandomStream({1, "tensors"}));
      const std::vector<NetworkTensor> tensors = network_tensors(architecture_of(spec));
      ASSERT_EQ(tensors.size(), network.parameters().size());
      for (size_t i = 0; i < tensors.size(); ++i) {
        const Parameter& parameter = *network.parameters()[i];
        EXPECT_EQ(tensors[i].name, parameter.name);
        EXPECT_EQ(tensors[i].rows, parameter.used_rows()) << parameter.name;
        EXPECT_EQ(tensors[i].columns, parameter.values.columns) << parameter.name;
        EXPECT_EQ(tensors[i].statistic, parameter.statistic) << parameter.name;
        EXPECT_EQ(tensors[i].signs, binary && parameter.name.ends_with(".convolution.weights"));
      }
    }
  }
}

// Predicting the same again: nothing is left from before.
TEST(PackedNetwork, AWorkspaceIsUsedAgain) {
  for (const char* name : {"cnn4", "resnet10"}) {
    const NetworkSpec spec = spec_of(name, 17, 18, 1, 16);
    RandomStream random({6, "packed"});
    Network layers = make_network(spec, 1, RandomStream({1, "packed"}));
    fill(false, &random, &layers);
    NetworkValues numbers;
    for (const NetworkTensor& tensor : network_tensors(architecture_of(spec))) {
      const Parameter* parameter = layers.parameters()[numbers.reals.size()];
      numbers.reals.push_back(tensor.signs ? std::vector<float>() : parameter->to_vector());
      numbers.signs.emplace_back(tensor.signs ? tensor.packed_bytes() : 0, uint8_t{0x5b});
    }
    const PackedNetwork packed = make_packed_network(spec, architecture_of(spec), numbers);
    const Dataset data = random_images(spec, 2, &random);
    PackedWorkspace workspace = packed.make_workspace();
    std::vector<float> first(spec.classes);
    std::vector<float> scores(spec.classes);
    packed.predict(data.image(0).data(), &workspace, first.data());
    packed.predict(data.image(1).data(), &workspace, scores.data());
    EXPECT_NE(scores, first);
    packed.predict(data.image(0).data(), &workspace, scores.data());
    EXPECT_EQ(scores, first);
    EXPECT_EQ(packed.measure_layers().size(), layer_costs(architecture_of(spec)).size());
  }
}

}  // namespace
}  // namespace bitfed
