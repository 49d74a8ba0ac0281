// Residual blocks with a shortcut around each convolution: h = activation(norm(conv1(x)) + shortcut(x)),
// out = activation(norm(conv2(h)) + h).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "bitfed/zoo/network/network_model.h"
#include "bitfed/zoo/network/network_recipe.h"
#include "bitfed/zoo/zoo.h"
#include "tests/base/error_text.h"
#include "tests/nn/plain_layers.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

Dataset images(size_t side, size_t count = 0) {
  RandomStream random({2, "images"});
  Dataset data;
  data.name = "x";
  data.height = data.width = side;
  data.channels = 3;
  data.pixel_mean.assign(3, 0.5f);
  data.pixel_std.assign(3, 0.5f);
  for (int i = 0; i < 10; ++i) data.class_names.push_back(std::to_string(i));
  for (size_t i = 0; i < count * data.image_bytes(); ++i)
    data.pixels.push_back(static_cast<uint8_t>(random.below(256)));
  data.labels.assign(count, 0);
  return data;
}

NetworkSpec spec_of(const std::string& model, bool binary, size_t side) {
  return read_network(Config::parse("[model]\n" + model, "recipe.toml"), images(side), binary);
}

const std::string kConvolution = "shortcuts = \"convolution\"\n";
const std::string kCustom =
    "name = \"custom\"\nlayers = [\"convolution 16\", \"norm\", \"activation\", \"block 16\", "
    "\"block 32 stride=2\", \"average-pool\", \"norm\", \"dense classes bias\"]\n";

// The custom network above by plain loops. Reads the parameters one by one, in the network's order: a
// convolution and its norm are five of them.
class Plain {
 public:
  explicit Plain(const std::vector<plain::Values>& parameters) : parameters_(parameters) {}

  double loss(Network& network, const std::vector<uint16_t>& labels) {
    plain::Batch x = relu(convolution(plain::batch_of(network.input(), labels.size()), 16, 3, 1));
    x = block(x, 16, 1);
    x = plain::mean_of_pixels(block(x, 32, 2));
    x = plain::normalise(x, parameters_[at_], parameters_[at_ + 1]);
    at_ += 4;
    return plain::loss(x, parameters_[at_], padded(10), parameters_[at_ + 1], 10, labels);
  }

 private:
  static plain::Batch relu(const plain::Batch& x) { return plain::clip(x, 0, 1e300); }
  plain::Batch convolution(const plain::Batch& x, size_t out, size_t side, size_t stride) {
    const plain::Batch y = plain::convolve(x, parameters_[at_], out, {side, stride});
    at_ += 5;
    return plain::normalise(y, parameters_[at_ - 4], parameters_[at_ - 3]);
  }
  plain::Batch block(const plain::Batch& x, size_t out, size_t stride) {
    plain::Batch h = convolution(x, out, 3, stride);
    h = relu(plain::add(h, stride > 1 ? convolution(x, out, 1, stride) : x));
    return relu(plain::add(convolution(h, out, 3, 1), h));
  }

  const std::vector<plain::Values>& parameters_;
  size_t at_ = 0;
};

TEST(Shortcuts, GradientsAgreeWithCentralDifferences) {
  const NetworkSpec spec = spec_of(kCustom + kConvolution, false, 7);
  Network network = make_network(spec, 4, RandomStream({3, "network"}));
  const Dataset data = images(7, 4);
  for (size_t i = 0; i < 4; ++i) load_image(spec, data.image(i), i, &network);
  const std::vector<uint16_t> labels = {3, 1, 4, 9};
  std::vector<plain::Values> values;
  for (const Parameter* parameter : network.parameters()) {
    const Floats& floats = parameter->values.values;
    values.emplace_back(floats.data(), floats.data() + floats.size());
  }
  EXPECT_NEAR(network.differentiate(labels), Plain(values).loss(network, labels), 1e-4);
  RandomStream random({4, "which"});
  for (size_t p = 0; p < values.size(); ++p) {
    const Parameter& parameter = *network.parameters()[p];
    if (parameter.statistic) continue;
    for (int trial = 0; trial < 4; ++trial) {
      const size_t row = random.below(static_cast<uint32_t>(parameter.values.rows));
      const size_t column = random.below(static_cast<uint32_t>(parameter.values.columns));
      const size_t i = row * parameter.values.stride + column;
      const auto at = [&](double change) {
        std::vector<plain::Values> moved = values;
        moved[p][i] += change;
        return Plain(moved).loss(network, labels);
      };
      const double expected = (at(1e-6) - at(-1e-6)) / 2e-6;
      EXPECT_NEAR(parameter.gradient.values[i], expected, 1e-3 * std::max(0.05, std::fabs(expected)))
          << parameter.name;
    }
  }
}

// The deployed network of bits predicts what the one in training does, also after a file.
TEST(Shortcuts, DeployedIsTrained) {
  for (const std::string& model :
       {std::string("width = 16\nname = \"resnet10\"\n"), std::string("width = 16\nname = \"resnet18\"\n"),
        std::string("deploy = \"static\"\nwidth = 16\nname = \"resnet10\"\n"), kCustom}) {
    SCOPED_TRACE(model);
    const NetworkSpec spec = spec_of(model + kConvolution, true, 11);
    const Dataset data = images(11, 4);
    for (const RotationUpdate rotation : {RotationUpdate::kEveryEpoch, RotationUpdate::kNone}) {
      Network trained = make_rotated_network(spec, {.rotation = rotation}, 4, RandomStream({7, "trained"}));
      for (size_t i = 0; i < 4; ++i) load_image(spec, data.image(i), i, &trained);
      trained.set_anchor();
      trained.begin_epoch(0.5);
      for (int step = 0; step < 3; ++step) {
        trained.differentiate(std::vector<uint16_t>{0, 1, 2, 3});
        trained.descend({.rate = 0.1f, .momentum = 0.9f, .decay = 5e-4f});
      }
      trained.predict(4);
      const NetworkModel model_of(spec, trained.deployed());
      const std::unique_ptr<Model> again = load_model(decode(encode(model_of.state()), "file"), "file");
      EXPECT_THAT(again->state().text("bitfed.network"), HasSubstr("\"shortcuts\":\"convolution\""));
      ThreadPool pool(1);
      const std::vector<float> scores = again->scores(data, pool);
      for (size_t i = 0; i < 4; ++i) {
        for (size_t c = 0; c < 10; ++c) ASSERT_EQ(scores[i * 10 + c], trained.logits(i)[c]) << i;
      }
    }
  }
}

// The same tensors and costs as with a shortcut around the block; another network.
TEST(Shortcuts, TensorsAndCostsOfTheBlock) {
  for (const bool binary : {true, false}) {
    const NetworkSpec each = spec_of("name = \"resnet18\"\nwidth = 16\n" + kConvolution, binary, 8);
    const NetworkSpec block = spec_of("name = \"resnet18\"\nwidth = 16\n", binary, 8);
    EXPECT_EQ(spec_of("name = \"resnet18\"\nwidth = 16\nshortcuts = \"block\"\n", binary, 8), block);
    const auto names = [](const NetworkSpec& spec) {
      std::multiset<std::string> all;
      for (const NetworkTensor& tensor : network_tensors(architecture_of(spec)))
        all.insert(tensor.name + " " + std::to_string(tensor.count()));
      return all;
    };
    EXPECT_EQ(names(each), names(block));
    const auto model = [](const NetworkSpec& spec) {
      Network network = make_network(spec, 1, RandomStream({1, "model"}));
      return NetworkModel(spec, parameters_of(network));
    };
    EXPECT_EQ(model(each).costs().bytes, model(block).costs().bytes);
    EXPECT_EQ(model(each).costs().flops, model(block).costs().flops);
    EXPECT_EQ(model(each).costs().binary_ops, model(block).costs().binary_ops);
    EXPECT_THAT(model(block).state().text("bitfed.network"), testing::Not(HasSubstr("shortcuts")));
    Network network = make_network(each, 1, RandomStream({1, "tensors"}));
    const std::vector<NetworkTensor> tensors = network_tensors(architecture_of(each));
    ASSERT_EQ(tensors.size(), network.parameters().size());
    for (size_t i = 0; i < tensors.size(); ++i) EXPECT_EQ(tensors[i].name, network.parameters()[i]->name);
  }
}

TEST(Shortcuts, WhatMakesNoSense) {
  const Config cnn4 = Config::parse("[model]\nname = \"cnn4\"\n" + kConvolution, "recipe.toml");
  EXPECT_EQ(read_network(cnn4, images(16), true).shortcuts, Shortcuts::kBlock);
  EXPECT_THAT(error_text([&] { cnn4.reject_unknown_keys(); }), HasSubstr("model.shortcuts"));
  EXPECT_THAT(error_text([] { spec_of("name = \"resnet10\"\nshortcuts = \"all\"\n", true, 16); }),
              AllOf(HasSubstr("model.shortcuts"), HasSubstr("all"), HasSubstr("convolution")));
  const NetworkSpec spec = spec_of("name = \"resnet10\"\nwidth = 16\n" + kConvolution, true, 8);
  Network network = make_rotated_network(spec, {}, 1, RandomStream({1, "model"}));
  State state = NetworkModel(spec, network.deployed()).state();
  std::string& described = state.metadata["bitfed.network"];
  described.replace(described.find("\"convolution\""), 13, "\"none\"");
  EXPECT_THAT(error_text([&] { load_model(state, "f"); }),
              HasSubstr("f: field 'shortcuts': found 'none', expected block or convolution"));
}

}  // namespace
}  // namespace bitfed
