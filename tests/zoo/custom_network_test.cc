// Networks that a recipe spells out.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bitfed/bits/kernels.h"
#include "bitfed/zoo/network/network_model.h"
#include "bitfed/zoo/network/network_recipe.h"
#include "bitfed/zoo/zoo.h"
#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

NetworkSpec spec_of(const std::vector<std::string>& layers, bool binary, uint32_t height = 12,
                    uint32_t width = 11, uint32_t channels = 3) {
  NetworkSpec spec;
  spec.name = "custom";
  spec.binary = binary;
  spec.layers = layers;
  spec.height = height;
  spec.image_width = width;
  spec.channels = channels;
  spec.classes = 7;
  spec.mean.assign(channels, 0.4f);
  spec.deviation.assign(channels, 0.3f);
  return spec;
}

std::string refusal(const std::vector<std::string>& layers, bool binary = false) {
  return error_text([&] { architecture_of(spec_of(layers, binary)); });
}

TEST(CustomNetwork, ErrorsNameTheLayerAndWhatWasExpected) {
  EXPECT_EQ(refusal({"convolutoin 8", "dense classes"}),
            "layer 1 'convolutoin 8': found 'convolutoin', expected one of activation, average-pool, block, "
            "convolution, dense, dropout, hardtanh, max-pool, norm, relu");
  EXPECT_EQ(refusal({"convolution"}),
            "layer 1 'convolution': expected the number of channels behind 'convolution'");
  EXPECT_EQ(refusal({"convolution 8 kernel=4"}),
            "layer 1 'convolution 8 kernel=4': found a kernel of 4, expected an odd number up to 15");
  EXPECT_EQ(refusal({"convolution 8 wide"}),
            "layer 1 'convolution 8 wide': found 'wide', which means nothing to 'convolution'");
  EXPECT_EQ(
      refusal({"convolution 0"}),
      "layer 1 'convolution 0': the number of channels: found '0', expected a whole number from 1 to 4096");
  EXPECT_EQ(refusal({"dropout 1"}),
            "layer 1 'dropout 1': the rate: found '1', expected a number from 0 to below 1");
  EXPECT_THAT(refusal({""}), HasSubstr("is empty"));
}

TEST(CustomNetwork, ShapesThatDoNotMeet) {
  EXPECT_EQ(refusal({"convolution 8", "max-pool 2", "max-pool 8"}),
            "layer 3 'max-pool 8': a window of 8 x 8, found images of 6 x 5");
  EXPECT_EQ(refusal({"convolution 8 kernel=13 valid"}),
            "layer 1 'convolution 8 kernel=13 valid': a kernel of 13 x 13 without padding, found images of "
            "12 x 11");
  EXPECT_THAT(refusal({"dense 8", "convolution 8"}),
              HasSubstr("layer 2 'convolution 8': found a convolution behind"));
  EXPECT_THAT(refusal({"dense 8", "block 8"}), HasSubstr("behind a dense layer"));
}

// A file of a kilobyte must not ask for gigabytes, nor fill a terminal.
TEST(CustomNetwork, DescriptionsAreBounded) {
  EXPECT_EQ(refusal({std::string(1000000, 'x')}), "layer 1: found 1000000 characters, expected at most 200");
  EXPECT_EQ(refusal({"relu\x1b[2J"}), "layer 1: found a character that is not printable ASCII");
  EXPECT_EQ(refusal(std::vector<std::string>(257, "relu")), "layers: found 257, expected at most 256");
  std::vector<std::string> layers = {"convolution 4096"};
  for (int i = 0; i < 200; ++i) layers.push_back("relu");
  layers.push_back("dense classes");
  EXPECT_THAT(refusal(layers), HasSubstr("values per image, expected at most 67108864"));
}

TEST(CustomNetwork, AListThatEndsWithoutClasses) {
  const std::string expected = "expected a dense layer of 7 units, one per class, at the end";
  EXPECT_THAT(refusal({}), HasSubstr(expected));
  EXPECT_THAT(refusal({"convolution 8", "relu"}), HasSubstr(expected));
  EXPECT_THAT(refusal({"convolution 8", "dense 8"}), HasSubstr(expected));
  EXPECT_THAT(refusal({"convolution 8", "dense classes", "relu"}), HasSubstr(expected));
  EXPECT_EQ(refusal({"convolution 8", "dense 7 bias"}), "");
}

TEST(CustomNetwork, ABinaryLayerWhereNoneCanBe) {
  EXPECT_THAT(refusal({"convolution 16 binary", "norm", "dense classes"}),
              HasSubstr("the method trains real networks"));
  EXPECT_THAT(refusal({"convolution 16", "norm", "dense classes binary"}, true),
              HasSubstr("dense layers are real"));
  EXPECT_THAT(refusal({"convolution 20", "norm", "dense classes"}, true),
              HasSubstr("found 20 channels, expected a multiple of 16 in a binary network"));
  EXPECT_THAT(refusal({"convolution 16", "activation", "dense classes"}, true),
              HasSubstr("layer 2 'activation': expected 'norm' behind a binary convolution"));
  EXPECT_THAT(refusal({"convolution 16 bias", "norm", "dense classes"}, true), HasSubstr("expected none"));
  EXPECT_THAT(refusal({"dense 16", "dense classes"}, true),
              HasSubstr("expected a convolution as the first layer"));
  EXPECT_THAT(refusal({"convolution 16 real binary"}, true), HasSubstr("one of them"));
}

// A recipe's error names its file, line and key.
TEST(CustomNetwork, RecipesAreChecked) {
  Dataset images;
  images.name = "fashion-mnist";
  images.height = images.width = 28;
  images.channels = 1;
  images.class_names.assign(10, "a");
  images.pixel_mean = images.pixel_std = {0.5f};
  const auto read = [&](const std::string& layers) {
    return error_text([&] {
      read_network(Config::parse("[model]\nname = \"custom\"\n" + layers, "recipe.toml"), images, false);
    });
  };
  EXPECT_EQ(read("layers = [\"max-pool 30\"]\n"),
            "recipe.toml: line 3: model.layers: layer 1 'max-pool 30': a window of 30 x 30, found images of "
            "28 x 28");
  EXPECT_THAT(read(""), HasSubstr("model.layers: layers: expected a dense layer of 10 units"));
}

uint64_t learned_parameters(const std::string& recipe, const Dataset& images) {
  const Config config = Config::load(std::filesystem::path(BITFED_TESTS_DIR) / ".." / "recipes" / recipe);
  uint64_t count = 0;
  for (const NetworkTensor& tensor : network_tensors(architecture_of(read_network(config, images, false))))
    count += tensor.statistic ? 0 : tensor.count();
  return count;
}

// The networks of the literature have as many parameters as their papers and programs say.
TEST(CustomNetwork, ParametersOfTheRecipes) {
  Dataset digits;
  digits.name = "mnist";
  digits.height = digits.width = 28;
  digits.channels = 1;
  digits.class_names.assign(10, "a");
  digits.pixel_mean = digits.pixel_std = {0.5f};
  Dataset colour = digits;
  colour.name = "cifar10";
  colour.height = colour.width = 32;
  colour.channels = 3;
  colour.pixel_mean = colour.pixel_std = {0.5f, 0.5f, 0.5f};
  EXPECT_EQ(learned_parameters("fedavg-lenet-mnist.toml", digits), 61706u);
  EXPECT_EQ(learned_parameters("fedavg-cnn3-cifar10.toml", colour), 319242u);
  EXPECT_EQ(learned_parameters("fedavg-pfl-cifar10.toml", colour), 1626442u);
}

// Every kind of layer and kernel, in networks that signs run through to the end.
const std::vector<std::vector<std::string>> kBinaryNetworks = {
    {"convolution 16", "norm", "activation", "convolution 32", "norm", "activation", "convolution 16", "norm",
     "activation", "max-pool 2", "dense classes bias"},
    {"convolution 16 real kernel=5", "norm", "hardtanh", "max-pool 2", "convolution 16 kernel=5", "norm",
     "hardtanh", "average-pool 2", "dense classes"},
    {"convolution 16 kernel=1", "norm", "relu", "convolution 32 kernel=7 stride=2", "norm", "relu",
     "dropout 0.3", "convolution 16 real kernel=3 stride=2 bias", "relu", "average-pool", "dense 32 bias",
     "relu", "dense classes"},
    {"convolution 32 stride=2", "norm", "activation", "block 32", "block 48 stride=2", "average-pool", "norm",
     "dense classes bias"},
    {"convolution 16 real bias", "hardtanh", "max-pool 2", "convolution 16 valid", "norm", "hardtanh",
     "convolution 16 valid", "norm", "hardtanh", "dense 16", "norm", "hardtanh", "dense classes bias"},
    {"convolution 16 valid", "norm", "activation", "max-pool 3", "convolution 16 kernel=3 stride=3", "norm",
     "max-pool 1", "dense classes"},
};

// Values as a trained network has them: signs where they are binary, norms that leave them about 1.
void fill(const Architecture& architecture, Network* network) {
  RandomStream random({8, "custom"});
  const std::vector<NetworkTensor> tensors = network_tensors(architecture);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string& name = tensors[i].name;
    std::vector<float> values = network->parameters()[i]->to_vector();
    for (float& value : values) {
      if (tensors[i].signs) value = value >= 0 ? 1.0f : -1.0f;
      if (name.ends_with(".scale")) value = static_cast<float>(1 + 0.5 * random.normal());
      if (name.ends_with(".shift") || name.ends_with(".bias"))
        value = static_cast<float>(0.3 * random.normal());
      if (name.ends_with(".mean")) value = static_cast<float>(0.3 * random.normal());
      if (name.ends_with(".variance")) value = static_cast<float>(20 * (0.3 + random.uniform()));
    }
    network->parameters()[i]->assign(values);
  }
}

Dataset random_images(const NetworkSpec& spec, size_t count) {
  RandomStream random({9, "custom"});
  Dataset data;
  data.height = spec.height;
  data.width = spec.image_width;
  data.channels = spec.channels;
  for (size_t i = 0; i < count * data.image_bytes(); ++i)
    data.pixels.push_back(static_cast<uint8_t>(random.below(256)));
  data.labels.resize(count);
  return data;
}

// On bits, by every instruction set: the scores of the layers in plain loops.
TEST(CustomNetwork, PredictsOnBitsAsItsLayersDo) {
  constexpr size_t kImages = 3;
  const std::string before = kernels().name;
  ThreadPool pool(1);
  for (size_t n = 0; n < kBinaryNetworks.size(); ++n) {
    for (const bool static_signs : {false, true}) {
      NetworkSpec spec = spec_of(kBinaryNetworks[n], true);
      spec.static_signs = static_signs;
      Network layers = make_network(spec, kImages, RandomStream({1, "custom"}));
      fill(architecture_of(spec), &layers);
      const NetworkModel model(spec, parameters_of(layers));
      const Dataset data = random_images(spec, kImages);
      force_kernels("scalar");
      for (size_t i = 0; i < kImages; ++i) load_image(spec, data.image(i), i, &layers);
      layers.predict(kImages);
      std::vector<float> expected;
      for (size_t i = 0; i < kImages; ++i)
        expected.insert(expected.end(), layers.logits(i), layers.logits(i) + spec.classes);
      for (const Kernels* table : supported_kernels()) {
        force_kernels(table->name);
        EXPECT_EQ(model.scores(data, pool), expected) << table->name << " network " << n;
      }
      EXPECT_EQ(model.measure_layers().size(), model.layer_costs().size());
      force_kernels(before);
      EXPECT_EQ(load_model(model.state(), "f")->scores(data, pool), expected)
          << "from its file, network " << n;
    }
  }
}

// The layers' parameters are the tensors of the description, real, binary and rotated.
TEST(CustomNetwork, TensorsAreTheParameters) {
  for (const std::vector<std::string>& layers : kBinaryNetworks) {
    for (const bool static_signs : {false, true}) {
      NetworkSpec spec = spec_of(layers, true);
      spec.static_signs = static_signs;
      Network network = make_network(spec, 1, RandomStream({1, "custom"}));
      const std::vector<NetworkTensor> tensors = network_tensors(architecture_of(spec));
      ASSERT_EQ(tensors.size(), network.parameters().size());
      for (size_t i = 0; i < tensors.size(); ++i) {
        EXPECT_EQ(tensors[i].name, network.parameters()[i]->name);
        EXPECT_EQ(tensors[i].count(), network.parameters()[i]->count());
        EXPECT_EQ(tensors[i].statistic, network.parameters()[i]->statistic);
      }
      Network rotated = make_rotated_network(spec, {}, 2, RandomStream({1, "custom"}));
      rotated.set_anchor();
      EXPECT_EQ(rotated.deployed().size(), tensors.size());
    }
  }
}

// Gradients reach every layer: the loss on a few images falls, for real networks of any first layer and for
// binary ones.
TEST(CustomNetwork, Learns) {
  const std::vector<std::vector<std::string>> real = {
      {"dense 20 bias", "relu", "dense classes bias"},
      {"average-pool 2", "convolution 9 bias", "relu", "dense classes"},
      {"max-pool 2", "dense classes"},
      {"convolution 5 kernel=5 stride=2", "norm", "relu", "block 7", "average-pool", "dense classes bias"},
      {"convolution 6 valid bias", "relu", "max-pool 2", "dropout 0.1", "dense 30 bias", "hardtanh",
       "dense classes"},
  };
  const auto falls = [](const NetworkSpec& spec, Network network) {
    const Dataset data = random_images(spec, 7);
    const std::vector<uint16_t> labels = {0, 1, 2, 3, 4, 5, 6};
    network.set_anchor();
    network.begin_epoch(0);
    for (size_t i = 0; i < 7; ++i) load_image(spec, data.image(i), i, &network);
    const float first = network.differentiate(labels);
    float last = first;
    for (int step = 0; step < 60; ++step) {
      network.descend({.rate = 0.1f});
      last = network.differentiate(labels);
    }
    return last < 0.7f * first;
  };
  for (const std::vector<std::string>& layers : real) {
    const NetworkSpec spec = spec_of(layers, false);
    EXPECT_TRUE(falls(spec, make_network(spec, 7, RandomStream({1, "custom"})))) << layers[0];
  }
  for (size_t n = 0; n < kBinaryNetworks.size(); ++n) {
    const NetworkSpec spec = spec_of(kBinaryNetworks[n], true);
    EXPECT_TRUE(falls(spec, make_rotated_network(spec, {}, 7, RandomStream({1, "custom"})))) << n;
  }
}

// Descriptions in files are not believed.
TEST(CustomNetwork, HostileFiles) {
  const NetworkSpec spec = spec_of(kBinaryNetworks[0], true);
  Network network = make_rotated_network(spec, {}, 1, RandomStream({1, "custom"}));
  network.set_anchor();
  State state = NetworkModel(spec, network.deployed()).state();
  const std::string good = state.metadata["bitfed.network"];
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    state.metadata["bitfed.network"] = text;
    return error_text([&] { load_model(state, "f"); });
  };
  EXPECT_EQ(with("convolution 32", "convolution 32"), "");
  EXPECT_THAT(with("convolution 32", "convolution 48"), HasSubstr("tensor 'layers.3.weights'"));
  EXPECT_THAT(with("convolution 32", "convolutoin 32"),
              HasSubstr("f: field 'layers': layer 4 'convolutoin 32'"));
  EXPECT_THAT(with("\"max-pool 2\"", "7"), HasSubstr("field 'layers': expected an array of strings"));
  EXPECT_THAT(with("\"layers\"", "\"lairs\""), HasSubstr("layers"));
  EXPECT_THAT(with("\"height\":12", "\"height\":256"), HasSubstr("tensor"));
}

}  // namespace
}  // namespace bitfed
