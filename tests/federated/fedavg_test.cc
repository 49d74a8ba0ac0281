#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "bitfed/zoo/network/network_model.h"
#include "bitfed/zoo/network/network_recipe.h"
#include "tests/base/error_text.h"
#include "tests/federated/dark_and_light.h"
#include "tests/federated/hand_made.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

constexpr const char* kRecipe =
    "[model]\nname = \"cnn4\"\nwidth = 16\n[method]\nname = \"fedavg\"\n[client]\nepochs = 2\nbatch = 8\n"
    "halve_from = 3\nhalve_every = 2\n";

NetworkSpec spec() {
  return read_network(Config::parse(kRecipe, "recipe.toml"), some_images(0), false);
}

NetworkParameters all_at(float value) {
  Network network = make_network(spec(), 1, RandomStream({1, "x"}));
  NetworkParameters parameters = parameters_of(network);
  for (auto& numbers : parameters) std::fill(numbers.begin(), numbers.end(), value);
  return parameters;
}

NetworkParameters read(const State& state) {
  Network network = make_network(spec(), 1, RandomStream({1, "x"}));
  return read_parameters(shapes_of(network), state);
}

State upload_of(float value, uint32_t samples) {
  State state;
  state.add_scalar<uint32_t>("samples", samples);
  Network network = make_network(spec(), 1, RandomStream({1, "x"}));
  add_parameters(shapes_of(network), all_at(value), &state);
  return state;
}

TEST(FedAvgTest, MeanBySamples) {
  const auto server = hand_made::method_of(kRecipe, some_images(0))->make_server();
  server->accept(0, upload_of(1, 30));
  server->accept(1, upload_of(5, 10));
  server->finish_round(1);
  EXPECT_EQ(read(server->broadcast(2)), all_at(2));
}

TEST(FedAvgTest, TheRateIsHalved) {
  const auto server = hand_made::method_of(kRecipe, some_images(0))->make_server();
  const auto rate = [&](uint32_t round) { return server->broadcast(round).scalar<float>("learning_rate"); };
  EXPECT_FLOAT_EQ(rate(1), 0.1f);
  EXPECT_FLOAT_EQ(rate(2), 0.1f);
  EXPECT_FLOAT_EQ(rate(3), 0.05f);
  EXPECT_FLOAT_EQ(rate(4), 0.05f);
  EXPECT_FLOAT_EQ(rate(5), 0.025f);
}

TEST(FedAvgTest, TheRateIsHalvedByPartsOfTheRounds) {
  const auto rate = [](uint32_t rounds, uint32_t round) {
    const std::string recipe = fmt::format("rounds = {}\n[model]\nname = \"cnn4\"\nwidth = 16\n", rounds) +
                               "[method]\nname = \"fedavg\"\n";
    return hand_made::method_of(recipe, some_images(0))
        ->make_server()
        ->broadcast(round)
        .scalar<float>("learning_rate");
  };
  EXPECT_FLOAT_EQ(rate(500, 199), 0.1f);  // as the paper has it
  EXPECT_FLOAT_EQ(rate(500, 200), 0.05f);
  EXPECT_FLOAT_EQ(rate(500, 250), 0.025f);
  EXPECT_FLOAT_EQ(rate(20, 7), 0.1f);
  EXPECT_FLOAT_EQ(rate(20, 8), 0.05f);
  EXPECT_FLOAT_EQ(rate(20, 10), 0.025f);
  EXPECT_FLOAT_EQ(rate(1, 1), 0.1f);
}

// A round of one client is training on its data, bit for bit.
TEST(FedAvgTest, OneClientIsCentralisedTraining) {
  const auto method = hand_made::method_of(kRecipe, some_images(0), 3);
  const auto server = method->make_server();
  const Dataset data = some_images(20);
  const State broadcast = server->broadcast(1);
  server->accept(0, decode(encode(method->make_client()->train(broadcast, data, context_of(4))), "upload"));
  server->finish_round(1);

  Network network = make_network(spec(), 8, RandomStream({1, "any"}));
  assign_parameters(read(broadcast), &network);
  std::vector<uint32_t> order(20);
  std::iota(order.begin(), order.end(), 0u);
  RandomStream random = RandomStream({4, "client"}).substream(0);
  for (int epoch = 0; epoch < 2; ++epoch) {
    random.shuffle(std::span(order));
    for (size_t first = 0; first < 20; first += 8) {
      std::vector<uint16_t> labels;
      for (size_t i = first; i < std::min<size_t>(first + 8, 20); ++i) {
        load_image(spec(), data.image(order[i]), i - first, &network);
        labels.push_back(data.labels[order[i]]);
      }
      network.differentiate(labels);
      network.descend({.rate = 0.1f});
    }
  }
  EXPECT_EQ(read(server->broadcast(2)), parameters_of(network));
}

// As OneClientIsCentralisedTraining, with a velocity that is 0 at the start of the round and decay.
TEST(FedAvgTest, MomentumWithinARound) {
  const auto uploads = [](const std::string& more) {
    const auto method = hand_made::method_of(kRecipe + more, some_images(0), 3);
    const State broadcast = method->make_server()->broadcast(1);
    const Dataset data = some_images(20);
    return std::pair(broadcast, method->make_client()->train(broadcast, data, context_of(4)));
  };
  const auto [broadcast, upload] = uploads("momentum = 0.9\nweight_decay = 0.01\n");
  const Dataset data = some_images(20);
  Network network = make_network(spec(), 8, RandomStream({1, "any"}));
  assign_parameters(read(broadcast), &network);
  std::vector<uint32_t> order(20);
  std::iota(order.begin(), order.end(), 0u);
  RandomStream random = RandomStream({4, "client"}).substream(0);
  for (int epoch = 0; epoch < 2; ++epoch) {
    random.shuffle(std::span(order));
    for (size_t first = 0; first < 20; first += 8) {
      std::vector<uint16_t> labels;
      for (size_t i = first; i < std::min<size_t>(first + 8, 20); ++i) {
        load_image(spec(), data.image(order[i]), i - first, &network);
        labels.push_back(data.labels[order[i]]);
      }
      network.differentiate(labels);
      network.descend({.rate = 0.1f, .momentum = 0.9f, .decay = 0.01f});
    }
  }
  EXPECT_EQ(read(upload), parameters_of(network));
  EXPECT_EQ(uploads("momentum = 0\nweight_decay = 0\n").second, uploads("").second);
  EXPECT_NE(uploads("momentum = 0.9\n").second, upload);
  EXPECT_NE(uploads("weight_decay = 0.01\n").second, upload);
}

// To what learns an update of its own, momentum and decay are unknown keys.
TEST(FedAvgTest, WhereMomentumHasNoMeaning) {
  for (const std::string name : {"fedbat", "fedmud"}) {
    for (const std::string key : {"momentum", "weight_decay"}) {
      const Config recipe = Config::parse("[model]\nname = \"cnn4\"\nwidth = 16\n[method]\nname = \"" + name +
                                              "\"\n[client]\n" + key + " = 0.5\n",
                                          "recipe.toml");
      make_method({recipe, some_images(0), 3});
      EXPECT_THAT(error_text([&] { recipe.reject_unknown_keys(); }), HasSubstr("client." + key));
    }
  }
}

TEST(FedAvgTest, RefusesHostileUploads) {
  const auto server = hand_made::method_of(kRecipe, some_images(0))->make_server();
  const auto refused = [&](const State& upload) { return error_text([&] { server->accept(0, upload); }); };
  EXPECT_THAT(refused(upload_of(1, 0)), HasSubstr("found 0, expected at least 1"));
  EXPECT_THAT(refused(upload_of(NAN, 3)), HasSubstr("expected finite numbers"));
  EXPECT_THAT(refused(upload_of(1e30f, 3)), HasSubstr("beyond"));
  EXPECT_THAT(refused(State()), HasSubstr("samples"));
}

TEST(FedAvgTest, AugmentedTheSameTwice) {
  const auto plain = hand_made::method_of(kRecipe, some_images(0));
  const auto augmented =
      hand_made::method_of(std::string(kRecipe) + "augment = \"crop-flip\"\n", some_images(0));
  const State broadcast = plain->make_server()->broadcast(1);
  const auto upload = [&](const Method& method) {
    return method.make_client()->train(broadcast, some_images(17), context_of(4));
  };
  EXPECT_EQ(upload(*augmented), upload(*augmented));
  EXPECT_NE(upload(*augmented), upload(*plain));
}

}  // namespace
}  // namespace bitfed
