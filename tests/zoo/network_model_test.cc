#include "bitfed/zoo/network/network_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "bitfed/zoo/network/network_recipe.h"
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
  data.pixel_mean.assign(channels, 0.5f);
  data.pixel_std.assign(channels, 0.5f);
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

NetworkModel binary_model(const NetworkSpec& spec) {
  Network network = make_rotated_network(spec, {}, 1, RandomStream({1, "model"}));
  return {spec, network.deployed()};
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

uint64_t learned_numbers(const NetworkSpec& spec) {
  Network network = make_network(spec, 1, RandomStream({1, "model"}));
  uint64_t count = 0;
  for (const Parameter* parameter : network.parameters())
    count += parameter->statistic ? 0 : parameter->count();
  return count;
}

// The paper's 19.6170 and 45.090 MB. Its 4.40e8 operations of ResNet10 are a miscount, as if one of the 3 x 3
// convolutions were 1 x 1.
TEST(NetworkModel, CostsOfResnets) {
  const NetworkSpec ten = spec_of("[model]\nname = \"resnet10\"\n", images(32, 3, "cifar10"));
  EXPECT_EQ(learned_numbers(ten), 4904266u);
  const uint64_t stages = 256u * (576 * 128 + 1152 * 128 + 64 * 128) +
                          64u * (1152 * 256 + 2304 * 256 + 128 * 256) +
                          16u * (2304 * 512 + 4608 * 512 + 256 * 512);
  EXPECT_EQ(fresh_model(ten).costs().flops, 2 * (1024u * 27 * 64 + 1024u * 2 * 576 * 64 + stages + 512 * 10));
  EXPECT_NEAR(static_cast<double>(fresh_model(ten).costs().flops), 5.07e8, 5e5);
  Dataset tiny = images(64, 3, "tiny");
  for (int i = 10; i < 200; ++i) tiny.class_names.push_back(std::to_string(i));
  const NetworkSpec eighteen = spec_of("[model]\nname = \"resnet18\"\n", tiny);
  EXPECT_EQ(learned_numbers(eighteen), 11272456u);
  EXPECT_NEAR(static_cast<double>(fresh_model(eighteen).costs().flops), 4.44e9, 1e7);
}

// Table 6 of the paper has them at 0.49 and 0.59 MB.
TEST(NetworkModel, CostsOfNarrowResnets) {
  for (const auto& [width, megabytes] : {std::pair(10u, 0.49), std::pair(11u, 0.59)}) {
    const NetworkSpec spec = spec_of("[model]\nname = \"resnet10\"\nwidth = " + std::to_string(width) + "\n",
                                     images(32, 3, "cifar10"));
    const uint64_t w = width;
    const uint64_t squares = 18 + (18 + 36 + 2) + (72 + 144 + 8) + (288 + 576 + 32);
    const uint64_t norms = 2 * w * (1 + 2 + 3 * 2 + 3 * 4 + 3 * 8 + 8);
    EXPECT_EQ(learned_numbers(spec), 27 * w + squares * w * w + norms + 80 * w + 10);
    EXPECT_NEAR(4e-6 * static_cast<double>(learned_numbers(spec)), megabytes, 0.005);
    const State state = fresh_model(spec).state();
    EXPECT_EQ(state.values<float>("blocks.1.first.convolution.weights", {9 * w, 2 * w}).size(), 18 * w * w);
  }
}

TEST(NetworkModel, ANarrowNetworkLearnsAndComesBack) {
  const NetworkSpec spec = spec_of("[model]\nname = \"resnet10\"\nwidth = 5\n", images(8, 3, "x"));
  const Dataset data = images(8, 3, "x", 6);
  Network network = make_network(spec, 6, RandomStream({1, "model"}));
  const std::vector<uint16_t> labels = {0, 1, 2, 3, 4, 5};
  for (size_t i = 0; i < 6; ++i) load_image(spec, data.image(i), i, &network);
  const float before = network.differentiate(labels);
  for (int step = 0; step < 20; ++step) {
    network.differentiate(labels);
    network.descend({.rate = 0.1f});
  }
  EXPECT_LT(network.differentiate(labels), before / 2);
  // What meets idle channels has stayed 0.
  for (const Parameter* parameter : network.parameters()) {
    Parameter copy = *parameter;
    copy.values.values.clear();
    copy.assign(parameter->to_vector());
    for (size_t i = 0; i < copy.values.values.size(); ++i)
      ASSERT_EQ(copy.values.values[i], parameter->values.values[i]) << parameter->name;
  }
  const NetworkModel model(spec, parameters_of(network));
  ThreadPool pool(1);
  EXPECT_EQ(load_model(model.state(), "f")->scores(data, pool), model.scores(data, pool));
}

// The stem and the dense layer stay real.
TEST(NetworkModel, CostsOfABinaryResnet) {
  const NetworkModel model =
      fresh_model(spec_of("[model]\nname = \"resnet10\"\n", images(32, 3, "cifar10"), true));
  const uint64_t signs =
      2 * 576 * 64 + 192 * 128 * 9 + 384 * 256 * 9 + 768 * 512 * 9 + (64 * 128 + 128 * 256 + 256 * 512);
  EXPECT_EQ(model.costs().bytes, signs / 8 + 4 * (4904266 - signs));
  EXPECT_EQ(model.costs().flops, 2u * (1024 * 27 * 64 + 512 * 10));
  EXPECT_EQ(2 * model.costs().binary_ops + model.costs().flops,
            fresh_model(spec_of("[model]\nname = \"resnet10\"\n", images(32, 3, "x"))).costs().flops);
}

TEST(NetworkModel, LayersAddUp) {
  for (const bool binary : {false, true}) {
    const NetworkModel model = fresh_model(spec_of("", images(28, 1, "fashion-mnist"), binary));
    ModelCosts sum;
    for (const LayerCosts& layer : model.layer_costs()) {
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
  for (const char* name : {"cnn4", "resnet10", "resnet18"}) {
    for (const std::string kind : {"real", "image", "static"}) {
      SCOPED_TRACE(name + (" " + kind));
      const bool binary = kind != "real";
      const std::string deploy = binary ? "deploy = \"" + kind + "\"\n" : "";
      const NetworkSpec spec = spec_of("[model]\nwidth = 16\nname = \"" + std::string(name) + "\"\n" + deploy,
                                       images(17, 3, "cifar10"), binary);
      EXPECT_EQ(spec.static_signs, kind == "static");
      const NetworkModel model = binary ? binary_model(spec) : fresh_model(spec);
      const State state = decode(encode(model.state()), "file");
      const std::unique_ptr<Model> again = load_model(state, "file");
      EXPECT_EQ(again->state(), model.state());
      ThreadPool pool(2);
      const Dataset data = images(17, 3, "cifar10", 10);
      EXPECT_EQ(again->scores(data, pool), model.scores(data, pool));
    }
  }
}

TEST(NetworkModel, ScoresOfManyImages) {
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
void expect_deployed_is_trained(const std::string& name, const std::string& deploy, size_t channels = 3) {
  SCOPED_TRACE(name + " " + deploy);
  const NetworkSpec spec =
      spec_of("[model]\nwidth = 16\nname = \"" + name + "\"\ndeploy = \"" + deploy + "\"\n",
              images(20, channels, "cifar10"), true);
  Network trained = make_rotated_network(spec, {}, 8, RandomStream({7, "trained"}));
  const Dataset data = images(20, channels, "cifar10", 8);
  for (size_t i = 0; i < 8; ++i) load_image(spec, data.image(i), i, &trained);
  trained.set_anchor();
  trained.begin_epoch(0.5);
  for (int step = 0; step < 3; ++step) {
    trained.differentiate(std::vector<uint16_t>{0, 1, 2, 3, 4, 5, 6, 7});
    trained.descend({.rate = 0.1f});
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

TEST(NetworkModel, DeployedIsTrained) {
  for (const char* deploy : {"image", "static"}) {
    expect_deployed_is_trained("cnn4", deploy);
    expect_deployed_is_trained("resnet10", deploy);
    // Pixels of as many channels as the first layer gives are pixels still.
    expect_deployed_is_trained("cnn4", deploy, 16);
    expect_deployed_is_trained("resnet10", deploy, 16);
  }
}

// One number for each time that signs are taken, gathered while training; costs are as before.
TEST(NetworkModel, StaticSignsHaveAMean) {
  const auto means_of = [](const std::string& name) {
    const NetworkSpec spec = spec_of("[model]\nwidth = 16\ndeploy = \"static\"\nname = \"" + name + "\"\n",
                                     images(16, 1, "x"), true);
    NetworkSpec image = spec;
    image.static_signs = false;
    EXPECT_EQ(fresh_model(spec).costs().bytes, fresh_model(image).costs().bytes);
    Network network = make_rotated_network(spec, {}, 4, RandomStream({7, "trained"}));
    const Dataset data = images(16, 1, "x", 4);
    for (size_t i = 0; i < 4; ++i) load_image(spec, data.image(i), i, &network);
    network.set_anchor();
    network.begin_epoch(0.5);
    network.differentiate(std::vector<uint16_t>{0, 1, 2, 3});
    std::vector<std::string> names;
    for (const Parameter* parameter : network.parameters()) {
      if (!parameter->name.ends_with(".signs.mean")) continue;
      names.push_back(parameter->name);
      EXPECT_TRUE(parameter->statistic);
      EXPECT_NE(parameter->to_vector(), std::vector{0.0f}) << parameter->name;
    }
    return names;
  };
  EXPECT_THAT(means_of("cnn4"),
              testing::ElementsAre("blocks.1.signs.mean", "blocks.2.signs.mean", "blocks.3.signs.mean"));
  const std::vector<std::string> resnet = means_of("resnet10");
  EXPECT_EQ(resnet.size(), 8u);
  EXPECT_THAT(resnet, testing::Contains("blocks.0.first.signs.mean"));
  EXPECT_THAT(resnet, testing::Contains("blocks.3.second.signs.mean"));
}

// As the FedBNN paper counts: a bit a number and a 58th of the operations, but for a real stem.
TEST(NetworkModel, CostsAsThePaperCounts) {
  const Dataset fashion = images(28, 1, "fashion-mnist");
  EXPECT_EQ(fresh_model(spec_of("", fashion)).costs().paper_bytes, 1563520u);
  EXPECT_EQ(fresh_model(spec_of("", fashion)).costs().paper_flops,
            fresh_model(spec_of("", fashion)).costs().flops);
  const ModelCosts binary = fresh_model(spec_of("", fashion, true)).costs();
  EXPECT_EQ(binary.paper_bytes, 48860u);
  EXPECT_NEAR(static_cast<double>(*binary.paper_flops), 3.485e5, 100);
  const std::string resnet = "[model]\nname = \"resnet10\"\n";
  const Dataset cifar = images(32, 3, "cifar10");
  const ModelCosts ten = fresh_model(spec_of(resnet, cifar, true)).costs();
  EXPECT_NEAR(static_cast<double>(*ten.paper_bytes), 0.6130e6, 100);
  const uint64_t stem = 2 * 1024 * 27 * 64;
  EXPECT_EQ(ten.paper_flops, stem + (fresh_model(spec_of(resnet, cifar)).costs().flops - stem) / 58);
}

// A filter of numbers of one magnitude is that magnitude times its signs: with inputs that are signs, too,
// the norm's numbers of the binarised network must give what the real ones give.
TEST(NetworkModel, BinarisedFoldsTheMagnitudeIntoTheNorm) {
  const NetworkSpec spec = spec_of("[model]\nwidth = 16\n", images(16, 1, "x"));
  Network network = make_network(spec, 1, RandomStream({1, "model"}));
  NetworkParameters parameters = parameters_of(network);
  RandomStream random({2, "numbers"});
  std::vector<float>& weights = parameters[5];  // of the second convolution, 144 x 32
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = random.below(2) == 0 ? 0.25f : -0.25f;
  weights[3] = 0.0f;
  for (float& mean : parameters[8]) mean = static_cast<float>(random.normal());
  const NetworkModel model(spec, parameters);
  const auto binarised = model.binarised();
  ASSERT_TRUE(binarised);
  EXPECT_EQ(binarised->binarised(), nullptr);
  const State state = decode(encode(binarised->state()), "file");
  EXPECT_EQ(load_model(state, "file")->state(), binarised->state());
  const auto bits = state.values<uint8_t>("blocks.1.convolution.weights", {144 * 32 / 8});
  const auto means = state.values<float>("blocks.1.norm.mean", {1, 32});
  const auto variances = state.values<float>("blocks.1.norm.variance", {1, 32});
  for (size_t f = 0; f < 32; ++f) {
    EXPECT_EQ(bits[f / 8] >> (f % 8) & 1, weights[f] >= 0 ? 1 : 0);
    const double magnitude = f == 3 ? 0.25 * 143 / 144 : 0.25;
    EXPECT_NEAR(means[f], parameters[8][f] / magnitude, 1e-5);
    // A sum of signs y: (magnitude y - mean) / sqrt(1 + epsilon), as the real norm has it.
    for (const double y : {-20.0, 3.0}) {
      EXPECT_NEAR((y - means[f]) / std::sqrt(variances[f] + 1e-5),
                  (magnitude * y - parameters[8][f]) / std::sqrt(1 + 1e-5), 1e-5);
    }
  }
  EXPECT_EQ(state.values<float>("blocks.1.norm.scale", {1, 32}), parameters[6]);
}

// A sample's scores do not depend on which others are predicted with it.
TEST(NetworkModel, EverySampleByItself) {
  for (const bool static_signs : {false, true}) {
    NetworkSpec spec = spec_of("[model]\nwidth = 16\n", images(16, 1, "x"), static_signs);
    spec.static_signs = static_signs;
    const NetworkModel model = static_signs ? binary_model(spec) : fresh_model(spec);
    ThreadPool pool(1);
    const Dataset data = images(16, 1, "x", 70);
    const std::vector<float> scores = model.scores(data, pool);
    const uint32_t last = 69;
    const std::vector<float> alone = model.scores(subset(data, std::span(&last, 1)), pool);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), scores.end() - 10));
  }
}

TEST(NetworkModel, InputsAreNormalised) {
  Dataset fashion = images(28, 1, "fashion-mnist");
  fashion.pixel_mean = {0.2860f};
  fashion.pixel_std = {0.3530f};
  const NetworkSpec spec = spec_of("", fashion);
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
  EXPECT_THAT(described("\"width\":16", "\"width\":17"), HasSubstr("blocks.0.convolution.weights"));
  EXPECT_THAT(described("\"height\":16", "\"height\":3"), HasSubstr("'height'"));
  EXPECT_THAT(described("\"cnn4\"", "\"cnn5\""), HasSubstr("found 'cnn5'"));
  EXPECT_THAT(described("\"deviation\":[0.5]", "\"deviation\":[0]"), HasSubstr("above 0"));
  EXPECT_THAT(described("\"mean\":[0.5]", "\"mean\":[1,2]"), HasSubstr("expected 1 finite numbers"));
  EXPECT_THAT(described("\"cnn4\"", "\"cnn4\",\"deploy\":\"static\""),
              HasSubstr("field 'deploy': found 'static', expected image for a real network"));
  EXPECT_EQ(described("\"cnn4\"", "\"cnn4\",\"deploy\":\"image\""), "");
  EXPECT_THAT(described("\"cnn4\"", "\"cnn4\",\"deploy\":1"), HasSubstr("field 'deploy': expected a string"));
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
  NetworkSpec static_spec = spec_of("[model]\nwidth = 16\n", images(16, 1, "x"), true);
  State meanless = fresh_model(static_spec).state();
  std::string& text = meanless.metadata["bitfed.network"];
  text.replace(text.find("\"cnn4\""), 6, "\"cnn4\",\"deploy\":\"static\"");
  EXPECT_THAT(error_text([&] { load_model(meanless, "f"); }), HasSubstr("blocks.1.signs.mean"));
  State extreme;
  extreme.metadata = good.metadata;
  for (Tensor tensor : good.tensors()) {
    if (tensor.name == "blocks.1.norm.scale") tensor.bytes[2] = tensor.bytes[3] = 0x7f;  // 3.3e38
    if (tensor.name == "blocks.1.norm.variance") tensor.bytes.assign(tensor.bytes.size(), 0);
    extreme.add(tensor);
  }
  EXPECT_THAT(error_text([&] { load_model(extreme, "f"); }),
              HasSubstr("blocks.1.norm.scale': expected a batch norm that can be folded"));
}

TEST(NetworkModel, RecipesThatMakeNoSense) {
  EXPECT_THAT(error_text([] { spec_of("[model]\nwidth = 20\n", images(28, 1, "x"), true); }),
              HasSubstr("model.width: found 20, expected a multiple of 16 for a binary network"));
  EXPECT_THAT(error_text([] { spec_of("[model]\ndeploy = \"static\"\n", images(28, 1, "x")); }),
              HasSubstr("model.deploy: found static, expected image for a real network"));
  EXPECT_THAT(error_text([] { spec_of("[model]\ndeploy = \"fast\"\n", images(28, 1, "x"), true); }),
              testing::AllOf(HasSubstr("model.deploy"), HasSubstr("fast"), HasSubstr("static")));
  EXPECT_THAT(error_text([] { spec_of("", images(8, 1, "x")); }),
              HasSubstr("images of 8 x 8, expected at least"));
  Dataset unmeasured = images(28, 3, "x");
  unmeasured.pixel_std.clear();
  EXPECT_EQ(
      error_text([&] { spec_of("", unmeasured); }),
      "recipe.toml: data.pixel_mean: missing for the images of 'x', expected pixel_mean and pixel_std in "
      "[data], one value per channel (3); bitfed data info prints them");
  Dataset table;
  table.name = "t";
  table.columns = {"a"};
  EXPECT_THAT(
      error_text([&] { spec_of("", table); }),
      testing::AllOf(HasSubstr("'t' is a table"), HasSubstr("for tables there are the methods fedavg")));
}

}  // namespace
}  // namespace bitfed
