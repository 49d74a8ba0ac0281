#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bitfed/federated/network/network_method.h"
#include "tests/base/error_text.h"
#include "tests/federated/hand_made.h"
#include "tests/federated/plain_training.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

State broadcast_of(const std::string& name) {
  return hand_made::method_of(plain_recipe(name), some_images(0), 3)->make_server()->broadcast(1);
}

State upload_of(const std::string& recipe, uint64_t seed, size_t images) {
  const auto method = hand_made::method_of(recipe, some_images(0), 3);
  const auto client = method->make_client();
  return client->train(method->make_server()->broadcast(1), some_images(images), context_of(seed));
}

std::string recipe_of(const std::string& method_keys, const std::string& client_keys = "") {
  return "[model]\nname = \"cnn4\"\nwidth = 16\n[method]\nname = \"fedprox\"\n" + method_keys +
         "[client]\nepochs = 2\nbatch = 8\n" + client_keys;
}

// Two clients by the formula, y <- y - rate (gradient + mu (y - x)); then the server's mean by samples.
TEST(FedProxTest, TwoClientsByTheFormula) {
  const auto method = hand_made::method_of(recipe_of("mu = 0.5\n"), some_images(0), 3);
  const auto server = method->make_server();
  const State broadcast = server->broadcast(1);
  const NetworkParameters x = read_plain(broadcast);
  std::vector<NetworkParameters> expected;
  for (const auto& [client, images] : {std::pair<uint32_t, size_t>(0, 20), {1, 10}}) {
    expected.push_back(train_plainly_with(x, some_images(images), client, [&](size_t p, size_t i, double y) {
      return 0.5 * (y - static_cast<double>(x[p][i]));
    }));
    const State upload = method->make_client()->train(broadcast, some_images(images), context_of(client));
    EXPECT_LT(largest_difference(read_plain(upload), expected.back()), 1e-4);
    server->accept(client, upload);
  }
  server->finish_round(1);
  NetworkParameters mean = expected[0];
  for (size_t p = 0; p < mean.size(); ++p) {
    for (size_t i = 0; i < mean[p].size(); ++i) mean[p][i] = (2 * expected[0][p][i] + expected[1][p][i]) / 3;
  }
  EXPECT_LT(largest_difference(read_plain(server->broadcast(2)), mean), 1e-4);
  // The term matters: without it the clients are elsewhere.
  EXPECT_GT(largest_difference(read_plain(upload_of(recipe_of("mu = 0\n"), 0, 20)), expected[0]), 1e-3);
}

TEST(FedProxTest, WithoutItsTermItIsFedAvg) {
  EXPECT_EQ(broadcast_of("fedprox"), broadcast_of("fedavg"));
  EXPECT_EQ(upload_of(recipe_of("mu = 0\n"), 4, 20), upload_of(plain_recipe("fedavg"), 4, 20));
}

TEST(FedProxTest, ALargeTermHoldsClientsBack) {
  const NetworkParameters x = read_plain(broadcast_of("fedprox"));
  const auto distance = [&](const std::string& mu) {
    const NetworkParameters y = read_plain(upload_of(recipe_of("mu = " + mu + "\n"), 4, 40));
    double square = 0;
    for (size_t p = 0; p < x.size(); ++p) {
      if (plain_shapes()[p].statistic) continue;
      for (size_t i = 0; i < x[p].size(); ++i) square += (x[p][i] - y[p][i]) * (x[p][i] - y[p][i]);
    }
    return square;
  };
  EXPECT_LT(distance("5"), 0.5 * distance("0"));
}

// The term is part of the gradient that momentum, weight decay and Adam see.
TEST(FedProxTest, WithTheOptimizers) {
  for (const std::string keys :
       {"momentum = 0.9\nweight_decay = 0.01\n", "optimizer = \"adam\"\nlearning_rate = 0.001\n"}) {
    const State plain = upload_of(recipe_of("mu = 0\n", keys), 4, 20);
    EXPECT_EQ(plain, upload_of(plain_recipe("fedavg") + keys, 4, 20));
    EXPECT_NE(plain, upload_of(recipe_of("mu = 0.5\n", keys), 4, 20));
  }
}

// A device without changed gradients, and without Adam, is refused by name.
TEST(FedProxTest, RefusedOnADeviceOfPlainDescent) {
  const Trainers plain{.make = make_cpu_trainer, .cohort = 4, .device = "a GPU", .plain = true};
  const auto refused = [&](const std::string& recipe) {
    return error_text([&] { hand_made::method_of(recipe, some_images(0), 3, &plain); });
  };
  EXPECT_THAT(refused(recipe_of("")), HasSubstr("--device: found a GPU, expected cpu: fedprox"));
  EXPECT_THAT(refused(plain_recipe("scaffold")), HasSubstr("expected cpu: scaffold"));
  EXPECT_THAT(refused(plain_recipe("fedavg") + "optimizer = \"adam\"\n"),
              HasSubstr("client.optimizer = \"adam\" is trained on the CPU alone"));
  EXPECT_NO_THROW(hand_made::method_of(plain_recipe("fedavg"), some_images(0), 3, &plain));
}

}  // namespace
}  // namespace bitfed
