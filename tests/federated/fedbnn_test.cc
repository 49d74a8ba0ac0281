#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "bitfed/zoo/network/network_model.h"
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
  for (const char* more : {"", "lambda = false\nbeta = false\n", "rotation = \"orthogonal\"\n",
                           "rotation = \"server\"\n", "rotation = \"none\"\n", "initial_scale = 0.3\n"}) {
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

// Static signs: clients gather and send the running means, the server takes their mean by samples.
TEST(FedBnnTest, StaticSignsAreFederated) {
  std::string recipe = kRecipe;
  recipe.insert(recipe.find("width"), "deploy = \"static\"\n");
  const auto method = hand_made::method_of(recipe, some_images(0), 3);
  const auto server = method->make_server();
  const Dataset data = some_images(40);
  const auto mean_of = [](const State& state) {
    return double{state.values<float>("blocks.2.signs.mean", {1, 1})[0]};
  };
  for (uint32_t round = 1; round <= 4; ++round) {
    const State broadcast = server->broadcast(round);
    double sum = 0;
    for (uint32_t client = 0; client < 2; ++client) {
      const State upload = method->make_client()->train(broadcast, data, context_of(10 * round + client));
      EXPECT_NE(mean_of(upload), mean_of(broadcast));
      sum += mean_of(upload);
      server->accept(client, decode(encode(upload), "upload"));
    }
    server->finish_round(round);
    EXPECT_NEAR(mean_of(server->broadcast(4)), sum / 2, 1e-6);
  }
  ThreadPool pool(1);
  const auto model = server->model();
  EXPECT_EQ(predict(*model, data, pool), data.labels);
  EXPECT_EQ(mean_of(model->state()), mean_of(server->broadcast(4)));
  EXPECT_THAT(model->state().text("bitfed.network"), HasSubstr("\"deploy\":\"static\""));
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
  const auto unrotated =
      hand_made::method_of(kRecipe + "rotation = \"none\"\n", some_images(0))->make_server()->broadcast(1);
  for (const char* what : {"theta", "r1", "r2"})
    EXPECT_FALSE(unrotated.has(std::string("blocks.0.convolution.") + what)) << what;
  EXPECT_TRUE(unrotated.has("blocks.0.convolution.lambda"));
}

// What goes beyond the paper's text is in the notes of a run.
TEST(FedBnnTest, NotesSayWhatGoesBeyondThePaper) {
  const auto notes = [](const std::string& model, const std::string& client) {
    return hand_made::method_of("[model]\nname = \"resnet10\"\nwidth = 16\n" + model +
                                    "[method]\nname = \"fedbnn\"\n[client]\n" + client,
                                some_images(0))
        ->make_server()
        ->notes();
  };
  const auto momentum = HasSubstr("momentum or weight decay");
  const auto shortcut = HasSubstr("a shortcut around each convolution");
  const auto beyond = notes("shortcuts = \"convolution\"\n", "momentum = 0.9\nweight_decay = 5e-4\n");
  EXPECT_THAT(beyond, testing::Contains(momentum));
  EXPECT_THAT(beyond, testing::Contains(shortcut));
  EXPECT_THAT(notes("", ""), testing::Not(testing::Contains(testing::AnyOf(momentum, shortcut))));
}

// Clients begin every round with the lambda and beta that the server started with: averaged, they drift to
// where nothing is learned any more.
TEST(FedBnnTest, LambdaAndBetaBeginAnewInEveryRound) {
  const auto method = hand_made::method_of(kRecipe, some_images(0), 3);
  const auto server = method->make_server();
  const auto number = [&](uint32_t round, const char* name) {
    return server->broadcast(round).values<float>(name, {1, 1})[0];
  };
  for (uint32_t client = 0; client < 3; ++client) {
    const State upload =
        method->make_client()->train(server->broadcast(1), some_images(10 + 7 * client), context_of(client));
    EXPECT_FALSE(upload.has("blocks.0.convolution.lambda"));
    EXPECT_FALSE(upload.has("blocks.3.convolution.gamma"));
    server->accept(client, upload);
  }
  server->finish_round(1);
  EXPECT_EQ(number(2, "blocks.0.convolution.lambda"), 0.9f);
  EXPECT_EQ(number(2, "blocks.3.convolution.gamma"), 0.1f);
}

// The largest number of R'R - I.
double off_orthogonal(const std::vector<float>& r, size_t size) {
  double most = 0;
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = 0; j < size; ++j) {
      double sum = i == j ? -1 : 0;
      for (size_t k = 0; k < size; ++k) sum += double{r[k * size + i]} * r[k * size + j];
      most = std::max(most, std::fabs(sum));
    }
  }
  return most;
}

// Where the server computes the rotations, clients send none, and what it broadcasts is orthogonal.
TEST(FedBnnTest, RotationAtTheServer) {
  const auto method = hand_made::method_of(kRecipe + "rotation = \"server\"\n", some_images(0), 3);
  const auto server = method->make_server();
  const auto rotation = [&](uint32_t round) {
    return server->broadcast(round).values<float>("blocks.1.convolution.r1", {12, 12});
  };
  const std::vector<float> first = rotation(1);
  for (uint32_t client = 0; client < 2; ++client) {
    const State upload =
        method->make_client()->train(server->broadcast(1), some_images(40), context_of(client));
    EXPECT_FALSE(upload.has("blocks.1.convolution.r1"));
    EXPECT_FALSE(upload.has("blocks.3.convolution.r2"));
    EXPECT_TRUE(upload.has("blocks.1.convolution.theta"));
    server->accept(client, upload);
  }
  server->finish_round(1);
  EXPECT_NE(rotation(2), first);
  EXPECT_LT(off_orthogonal(rotation(2), 12), 1e-3);
}

// The mean of two rotations is none; made orthogonal, clients begin elsewhere.
TEST(FedBnnTest, OrthogonalAtTheStartOfARound) {
  const auto plain = hand_made::method_of(kRecipe, some_images(0), 3);
  const auto orthogonal = hand_made::method_of(kRecipe + "rotation = \"orthogonal\"\n", some_images(0), 3);
  const auto server = plain->make_server();
  for (uint32_t client = 0; client < 2; ++client) {
    server->accept(client,
                   plain->make_client()->train(server->broadcast(1), some_images(40), context_of(client)));
  }
  server->finish_round(1);
  const State broadcast = server->broadcast(2);
  EXPECT_GT(off_orthogonal(broadcast.values<float>("blocks.1.convolution.r1", {12, 12}), 12), 1e-3);
  const auto upload = [&](const Method& method) {
    return method.make_client()->train(broadcast, some_images(16), context_of(9));
  };
  EXPECT_NE(upload(*plain), upload(*orthogonal));
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
