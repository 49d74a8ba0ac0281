#include "bitfed/zoo/network_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "bitfed/zoo/zoo.h"
#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

Dataset images(size_t side, size_t channels, const std::string& name, size_t count = 0) {
  RandomStream random({2, "images"});
  Dataset data;
  data.name = name;
  data.height = data.width = side;
  data.channels = channels;
  for (int i = 0; i < 10; ++i) data.class_names.push_back(std::to_string(i));
  for (size_t i = 0; i < count * data.image_bytes(); ++i)
    data.pixels.push_back(static_cast<uint8_t>(random.below(256)));
  data.labels.assign(count, 0);
  return data;
}

NetworkSpec spec_of(const std::string& recipe, const Dataset& prototype, bool binary = false) {
  return read_network(Config::parse(recipe, "recipe.toml"), prototype, binary);
}

NetworkModel fresh_model(const NetworkSpec& spec) {
  Network network = make_network(spec, 1, RandomStream({1, "model"}));
  return {spec, parameters_of(network)};
}

// The FedBNN paper's own figures: 390,880 parameters of four bytes and 2.0216e7 operations on Fashion-MNIST,
// 399,136 and 3.010e7 on SVHN.
TEST(NetworkModel, CostsOfCnn4AreThePapers) {
  const NetworkModel fashion = fresh_model(spec_of("", images(28, 1, "fashion-mnist")));
  EXPECT_EQ(fashion.costs().bytes, 4u * 390880);
  EXPECT_EQ(fashion.costs().flops,
            2u * (28 * 28 * 9 * 32 + 14 * 14 * 288 * 64 + 7 * 7 * 576 * 128 + 3 * 3 * 1152 * 256 + 2560));
  EXPECT_NEAR(static_cast<double>(fashion.costs().flops), 2.0216e7, 1e3);
  const NetworkModel svhn = fresh_model(spec_of("", images(32, 3, "svhn")));
  EXPECT_EQ(svhn.costs().bytes, 4u * 399136);
  EXPECT_NEAR(static_cast<double>(svhn.costs().flops), 3.010e7, 1e4);
}

TEST(NetworkModel, LayersAddUp) {
  for (const bool binary : {false, true}) {
    const NetworkModel model = fresh_model(spec_of("", images(28, 1, "fashion-mnist"), binary));
    ModelCosts sum;
    for (const NetworkLayerCosts& layer : model.layer_costs()) {
      sum.bytes += layer.weight_bytes + layer.norm_bytes;
      sum.flops += layer.flops;
      sum.binary_ops += layer.binary_ops;
    }
    EXPECT_EQ(sum.bytes, model.costs().bytes);
    EXPECT_EQ(sum.flops, model.costs().flops);
    EXPECT_EQ(sum.binary_ops, model.costs().binary_ops);
    EXPECT_EQ(model.measure_layers().size(), binary ? model.layer_costs().size() : 0);
  }
}

TEST(NetworkModel, ComesBackFromItsState) {
  const NetworkSpec spec = spec_of("[model]\nwidth = 16\n", images(20, 3, "cifar10"));
  const NetworkModel model = fresh_model(spec);
  const State state = decode(encode(model.state()), "file");
  const std::unique_ptr<Model> again = load_model(state, "file");
  EXPECT_EQ(again->state(), model.state());
  ThreadPool pool(2);
  const Dataset data = images(20, 3, "cifar10", 70);
  EXPECT_EQ(again->scores(data, pool), model.scores(data, pool));
}

// 387,360 signs, and four bytes for each of 960 numbers of batch norm and 2,560 of the dense layer.
TEST(NetworkModel, CostsOfABinaryOne) {
  const NetworkModel model = fresh_model(spec_of("", images(28, 1, "fashion-mnist"), true));
  EXPECT_EQ(model.costs().bytes, 387360u / 8 + 4 * (960 + 2560));
  EXPECT_EQ(model.costs().flops, 28u * 28 * 9 * 32 + 2 * 2560);
  EXPECT_EQ(model.costs().binary_ops, 14u * 14 * 288 * 64 + 7 * 7 * 576 * 128 + 3 * 3 * 1152 * 256);
}

// The deployed network of signs predicts what the one in training does.
TEST(NetworkModel, DeployedIsTrained) {
  const NetworkSpec spec = spec_of("[model]\nwidth = 16\n", images(20, 3, "cifar10"), true);
  Network trained = make_rotated_network(spec, {}, 8, RandomStream({7, "trained"}));
  const Dataset data = images(20, 3, "cifar10", 8);
  for (size_t i = 0; i < 8; ++i) load_image(spec, data.image(i), i, &trained);
  trained.begin_round();
  trained.begin_epoch(0.5);
  for (int step = 0; step < 3; ++step) {
    trained.differentiate(std::vector<uint16_t>{0, 1, 2, 3, 4, 5, 6, 7});
    trained.descend(0.1f);
  }
  trained.predict(8);
  const NetworkModel model(spec, trained.deployed());
  const std::unique_ptr<Model> again = load_model(decode(encode(model.state()), "file"), "file");
  ThreadPool pool(1);
  const std::vector<float> scores = again->scores(data, pool);
  for (size_t i = 0; i < 8; ++i) {
    for (size_t c = 0; c < 10; ++c) EXPECT_EQ(scores[i * 10 + c], trained.logits(i)[c]);
  }
}

// A sample's scores do not depend on which others are predicted with it.
TEST(NetworkModel, EverySampleByItself) {
  const NetworkSpec spec = spec_of("[model]\nwidth = 16\n", images(16, 1, "x"));
  const NetworkModel model = fresh_model(spec);
  ThreadPool pool(1);
  const Dataset data = images(16, 1, "x", 70);
  const std::vector<float> scores = model.scores(data, pool);
  const uint32_t last = 69;
  const std::vector<float> alone = model.scores(subset(data, std::span(&last, 1)), pool);
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), scores.end() - 10));
}

TEST(NetworkModel, InputsAreNormalised) {
  const NetworkSpec spec = spec_of("", images(28, 1, "fashion-mnist"));
  Network network = make_network(spec, 2, RandomStream({1, "n"}));
  std::vector<uint8_t> pixels(28 * 28, 0);
  pixels[28 + 3] = 255;
  load_image(spec, pixels, 1, &network);
  EXPECT_FLOAT_EQ(network.input().row(1, 0)[0], -0.2860f / 0.3530f);
  EXPECT_FLOAT_EQ(network.input().row(1, 1)[3], (1 - 0.2860f) / 0.3530f);
}

TEST(NetworkModel, RefusesWhatDoesNotFit) {
  const NetworkSpec spec = spec_of("[model]\nwidth = 16\n", images(16, 1, "x"));
  const State good = fresh_model(spec).state();
  const auto described = [&](const std::string& from, const std::string& to) {
    State state = good;
    std::string& text = state.metadata["bitfed.network"];
    text.replace(text.find(from), from.size(), to);
    return error_text([&] { load_model(state, "f"); });
  };
  EXPECT_THAT(described("\"width\":16", "\"width\":32"), HasSubstr("blocks.0.convolution.weights"));
  EXPECT_THAT(described("\"width\":16", "\"width\":17"), HasSubstr("multiple of 16"));
  EXPECT_THAT(described("\"height\":16", "\"height\":3"), HasSubstr("'height'"));
  EXPECT_THAT(described("\"cnn4\"", "\"cnn5\""), HasSubstr("found 'cnn5'"));
  EXPECT_THAT(described("\"deviation\":[0.5]", "\"deviation\":[0]"), HasSubstr("above 0"));
  EXPECT_THAT(described("\"mean\":[0.5]", "\"mean\":[1,2]"), HasSubstr("expected 1 finite numbers"));
  // A file of some kilobytes must not ask for a gigabyte.
  EXPECT_THAT(described("\"height\":16", "\"height\":256"), HasSubstr("dense.weights"));
  EXPECT_THAT(described("\"height\":16", "\"height\":4096"), HasSubstr("'height'"));
  EXPECT_THAT(described("\"width\":16", "\"width\":256"), HasSubstr("blocks.0.convolution.weights"));
  State broken;
  broken.metadata = good.metadata;
  for (Tensor tensor : good.tensors()) {
    if (tensor.name == "blocks.1.norm.variance") tensor.bytes[3] = 0xbf;  // the first is negative then
    broken.add(tensor);
  }
  EXPECT_THAT(error_text([&] { load_model(broken, "f"); }), HasSubstr("blocks.1.norm.variance"));
  State extreme;
  extreme.metadata = good.metadata;
  for (Tensor tensor : good.tensors()) {
    if (tensor.name == "blocks.1.norm.scale") tensor.bytes[2] = tensor.bytes[3] = 0x7f;  // 3.3e38
    if (tensor.name == "blocks.1.norm.variance") tensor.bytes.assign(tensor.bytes.size(), 0);
    extreme.add(tensor);
  }
  EXPECT_THAT(error_text([&] { load_model(extreme, "f"); }), HasSubstr("batch norms"));
}

TEST(NetworkModel, RecipesThatMakeNoSense) {
  EXPECT_THAT(error_text([] { spec_of("[model]\nwidth = 20\n", images(28, 1, "x")); }),
              HasSubstr("model.width: found 20, expected a multiple of 16"));
  EXPECT_THAT(error_text([] { spec_of("", images(8, 1, "x")); }),
              HasSubstr("images of 8 x 8, expected at least"));
  Dataset table;
  table.name = "t";
  table.columns = {"a"};
  EXPECT_THAT(error_text([&] { spec_of("", table); }), HasSubstr("'t' is a table"));
}

}  // namespace
}  // namespace bitfed
