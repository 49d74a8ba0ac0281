#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/base/error_text.h"
#include "tests/federated/hand_made.h"
#include "tests/federated/plain_training.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

const std::string kRecipe = plain_recipe("fedavg");

NetworkParameters all_at(float value) {
  NetworkParameters parameters;
  for (const ParameterShape& shape : plain_shapes()) parameters.emplace_back(shape.count(), value);
  return parameters;
}

State upload_of(float value, uint32_t samples) {
  State state;
  state.add_scalar<uint32_t>("samples", samples);
  add_parameters(plain_shapes(), all_at(value), &state);
  return state;
}

TEST(FedAvgTest, MeanBySamples) {
  const auto server = hand_made::method_of(kRecipe, some_images(0))->make_server();
  server->accept(0, upload_of(1, 30));
  server->accept(1, upload_of(5, 10));
  server->finish_round(1);
  EXPECT_EQ(read_plain(server->broadcast(2)), all_at(2));
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
  EXPECT_EQ(read_plain(server->broadcast(2)),
            train_plainly(read_plain(broadcast), data, 4,
                          [](Network* network) { network->descend({.rate = 0.1f}); }));
}

// As OneClientIsCentralisedTraining, with a velocity that is 0 at the start of the round and decay; and with
// Adam, whose moments are 0 then.
TEST(FedAvgTest, MomentumAndAdamWithinARound) {
  const Dataset data = some_images(20);
  const auto uploads = [&](const std::string& more) {
    const auto method = hand_made::method_of(kRecipe + more, some_images(0), 3);
    const State broadcast = method->make_server()->broadcast(1);
    return std::pair(broadcast, method->make_client()->train(broadcast, data, context_of(4)));
  };
  const auto [broadcast, upload] = uploads("momentum = 0.9\nweight_decay = 0.01\n");
  EXPECT_EQ(read_plain(upload), train_plainly(read_plain(broadcast), data, 4, [](Network* network) {
              network->descend({.rate = 0.1f, .momentum = 0.9f, .decay = 0.01f});
            }));
  EXPECT_EQ(uploads("momentum = 0\nweight_decay = 0\n").second, uploads("").second);
  EXPECT_NE(uploads("momentum = 0.9\n").second, upload);
  EXPECT_NE(uploads("weight_decay = 0.01\n").second, upload);

  EXPECT_EQ(uploads("optimizer = \"sgd\"\n").second, uploads("").second);
  const auto [first, by_adam] = uploads("optimizer = \"adam\"\n");
  EXPECT_FLOAT_EQ(first.scalar<float>("learning_rate"), 0.001f);
  EXPECT_EQ(read_plain(by_adam), train_plainly(read_plain(first), data, 4, [](Network* network) {
              network->descend({.rate = 0.001f, .adam = true});
            }));
}

TEST(FedAvgTest, AdamHasNoMomentum) {
  const Config recipe = Config::parse(kRecipe + "optimizer = \"adam\"\nmomentum = 0.9\n", "r");
  make_method({recipe, some_images(0), 3});
  EXPECT_THAT(error_text([&] { recipe.reject_unknown_keys(); }), HasSubstr("client.momentum"));
}

// To what learns an update of its own, momentum and decay are unknown keys.
TEST(FedAvgTest, WhereMomentumHasNoMeaning) {
  for (const std::string name : {"fedbat", "fedmud", "scaffold"}) {
    for (const std::string key : {"momentum", "weight_decay", "optimizer"}) {
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
  const auto augmented = hand_made::method_of(kRecipe + "augment = \"crop-flip\"\n", some_images(0));
  const State broadcast = plain->make_server()->broadcast(1);
  const auto upload = [&](const Method& method) {
    return method.make_client()->train(broadcast, some_images(17), context_of(4));
  };
  EXPECT_EQ(upload(*augmented), upload(*augmented));
  EXPECT_NE(upload(*augmented), upload(*plain));
}

}  // namespace
}  // namespace bitfed
