#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "bitfed/zoo/network_model.h"
#include "tests/base/error_text.h"
#include "tests/federated/dark_and_light.h"
#include "tests/federated/hand_made.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

const std::string kRecipe =
    "rounds = 4\n[model]\nname = \"cnn4\"\nwidth = 16\n[client]\nepochs = 2\nbatch = 8\n[method]\nname = "
    "\"fedbnn\"\n";

TEST(FedBnnTest, LearnsDarkFromLightAndDeploysBits) {
  for (const char* more : {"", "lambda = false\nbeta = false\n"}) {
    const auto method = hand_made::method_of(kRecipe + more, some_images(0), 3);
    const auto server = method->make_server();
    const Dataset data = some_images(40);
    for (uint32_t round = 1; round <= 4; ++round) {
      for (uint32_t client = 0; client < 2; ++client) {
        const State upload =
            method->make_client()->train(server->broadcast(round), data, context_of(10 * round + client));
        server->accept(client, decode(encode(upload), "upload"));
      }
      server->finish_round(round);
    }
    ThreadPool pool(1);
    const auto model = server->model();
    EXPECT_EQ(predict(*model, data, pool), data.labels) << more;
    // Signs as bits: 9 * (1 * 16 + 16 * 32 + 32 * 64 + 64 * 128) of them.
    EXPECT_EQ(model->costs().bytes, 9 * (16 + 16 * 32 + 32 * 64 + 64 * 128) / 8 + 4 * (2 * 240 + 2 * 128));
    EXPECT_EQ(model->state().values<uint8_t>("blocks.3.convolution.weights", {9 * 64 * 128 / 8}).size(),
              9216u);
  }
}

// Where lambda and beta are off, their parameters are not sent.
TEST(FedBnnTest, WhatIsSent) {
  const auto with = hand_made::method_of(kRecipe, some_images(0))->make_server()->broadcast(1);
  EXPECT_TRUE(with.has("blocks.0.convolution.lambda"));
  EXPECT_TRUE(with.has("blocks.2.convolution.r1"));
  EXPECT_EQ(with.values<float>("blocks.1.convolution.r1", {12, 12}).size(), 144u);  // 9 * 16 = 12 * 12
  const auto without = hand_made::method_of(kRecipe + "lambda = false\nbeta = false\n", some_images(0))
                           ->make_server()
                           ->broadcast(1);
  EXPECT_FALSE(without.has("blocks.0.convolution.lambda"));
  EXPECT_FALSE(without.has("blocks.0.convolution.gamma"));
  EXPECT_TRUE(without.has("blocks.0.convolution.theta"));
}

TEST(FedBnnTest, TheSameTwice) {
  const auto method = hand_made::method_of(kRecipe, some_images(0), 3);
  const State broadcast = method->make_server()->broadcast(2);
  const auto upload = [&] { return method->make_client()->train(broadcast, some_images(17), context_of(4)); };
  EXPECT_EQ(upload(), upload());
}

TEST(FedBnnTest, SavedAndRestored) {
  const auto method = hand_made::method_of(kRecipe, some_images(0), 3);
  const auto server = method->make_server();
  server->accept(0, method->make_client()->train(server->broadcast(1), some_images(9), context_of(1)));
  server->finish_round(1);
  const auto other = method->make_server();
  other->restore(decode(encode(server->save()), "saved"));
  EXPECT_EQ(other->broadcast(2), server->broadcast(2));
  EXPECT_EQ(other->model()->state(), server->model()->state());
}

TEST(FedBnnTest, RefusesAStrangeRoundAndRate) {
  const auto method = hand_made::method_of(kRecipe, some_images(0), 3);
  const auto server = method->make_server();
  const auto refused = [&](uint32_t round) {
    return error_text(
        [&] { method->make_client()->train(server->broadcast(round), some_images(9), context_of(1)); });
  };
  EXPECT_EQ(refused(4), "");
  EXPECT_THAT(refused(5), HasSubstr("tensor 'round': found 5, expected 1 to 4"));
}

}  // namespace
}  // namespace bitfed
