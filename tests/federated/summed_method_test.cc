// Methods whose updates are summed before the server half sees them, beside the same methods without.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "bitfed/federated/mlp/mlp_messages.h"
#include "bitfed/federated/privacy/update_grid.h"
#include "tests/base/error_text.h"
#include "tests/federated/dark_and_light.h"
#include "tests/federated/hand_made.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

std::string network(const std::string& method, const std::string& more = "") {
  return "[model]\nname = \"cnn4\"\nwidth = 8\n[client]\nepochs = 1\nbatch = 8\n[method]\nname = \"" +
         method + "\"\n" + more;
}

const std::string kGrid = "[privacy]\nupdate_grid = 20\n";

// The server's state after one round of two clients with 16 and 8 samples, or of one of them.
State after_a_round(const std::string& recipe, const std::vector<uint32_t>& clients = {0, 1}) {
  const auto method = hand_made::method_of(recipe, some_images(0));
  const auto client = method->make_client();
  const auto server = method->make_server();
  const State broadcast = server->broadcast(1);
  for (const uint32_t number : clients)
    server->accept(number, client->train(broadcast, some_images(number == 0 ? 16 : 8), context_of(number)));
  server->finish_round(1);
  return server->save();
}

void expect_near(const State& a, const State& b, double most) {
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (const Tensor& tensor : a.tensors()) {
    const auto left = a.values<float>(tensor.name, tensor.shape);
    const auto right = b.values<float>(tensor.name, tensor.shape);
    for (size_t i = 0; i < left.size(); ++i)
      ASSERT_NEAR(left[i], right[i], most * std::max(1.0f, std::fabs(left[i]))) << tensor.name << " " << i;
  }
}

TEST(SummedMethodTest, NetworksAreAsWithoutTheGridUpToRounding) {
  for (const char* method : {"fedavg", "fedbnn", "fedbat", "fedmud"}) {
    const State plain = after_a_round(network(method));
    const State summed = after_a_round(network(method, kGrid));
    expect_near(plain, summed, 1e-6);
    EXPECT_NE(plain, summed) << method;
  }
  expect_near(after_a_round(network("fedbnn", "rotation = \"server\"\n")),
              after_a_round(network("fedbnn", "rotation = \"server\"\n" + kGrid)), 1e-6);
}

// With equal weights a round's result lies halfway between those of its two clients alone.
TEST(SummedMethodTest, EqualWeights) {
  const std::string recipe = network("fedavg", kGrid + "weights = \"equal\"\n");
  const State both = after_a_round(recipe);
  const State first = after_a_round(recipe, {0});
  const State second = after_a_round(recipe, {1});
  for (const Tensor& tensor : both.tensors()) {
    const auto of = [&](const State& state) { return state.values<float>(tensor.name, tensor.shape)[0]; };
    EXPECT_NEAR(of(both), (of(first) + of(second)) / 2, 1e-5) << tensor.name;
  }
  EXPECT_NE(both, after_a_round(network("fedavg", kGrid)));
}

Dataset table(size_t rows) {
  RandomStream random({4, "table"});
  Dataset data;
  data.name = "table";
  data.columns = {"a", "b"};
  data.class_names = {"no", "yes"};
  for (size_t i = 0; i < rows; ++i) {
    data.values.push_back(static_cast<float>(1000 * random.normal()));
    data.values.push_back(static_cast<float>(random.normal()));
    data.labels.push_back(data.row(i)[0] > data.row(i)[1] ? 1 : 0);
  }
  return data;
}

// After the preparation and two rounds.
State after_rounds_of_mlp(const std::string& more) {
  const auto method = hand_made::method_of(
      "[model]\nname = \"mlp\"\nhidden = [4]\n[method]\nname = \"fed-bin-mlp\"\n" + more, table(0));
  const auto client = method->make_client();
  const auto server = method->make_server();
  for (uint32_t round = 0; round < 3; ++round) {
    const State broadcast = server->broadcast(round);
    for (const uint32_t number : {0u, 1u}) {
      ClientContext context = context_of(number);
      context.keep = [](const State&) {};
      server->accept(number, client->train(broadcast, table(40 + 20 * number), context));
    }
    server->finish_round(round);
  }
  return server->save();
}

TEST(SummedMethodTest, PerceptronsAreAsWithoutTheGridUpToRounding) {
  expect_near(after_rounds_of_mlp(""), after_rounds_of_mlp(kGrid), 1e-5);
}

// Votes are whole numbers: no grid changes them.
TEST(SummedMethodTest, VotesAreExact) {
  const State plain = after_rounds_of_mlp("upload = \"bits\"\n");
  const State summed = after_rounds_of_mlp("upload = \"bits\"\n" + kGrid);
  EXPECT_EQ(plain.values<float>("weights", {State::kAny}), summed.values<float>("weights", {State::kAny}));
  expect_near(plain, summed, 1e-5);
}

TEST(SummedMethodTest, RecipesThatNeedSingleUpdates) {
  const auto text = [](const std::string& recipe) {
    return error_text([&] { hand_made::method_of(recipe, some_images(0)); });
  };
  for (const char* method : {"fedtm-bank", "fedtmos", "fedtmos-ensemble", "fedtm", "fedtm-largest"}) {
    EXPECT_THAT(text(std::string("[method]\nname = \"") + method + "\"\n" + kGrid),
                HasSubstr(std::string("privacy.update_grid: found together with method '") + method +
                          "', expected a method that averages: it needs each client's upload by itself"));
  }
  for (const char* rule : {"median", "trimmed-mean", "geometric-median"}) {
    EXPECT_THAT(text(network("fedavg", kGrid + "[federation]\ncombine = \"" + rule + "\"\n")),
                HasSubstr("federation.combine: found together with [privacy], expected 'mean'"));
  }
  EXPECT_THAT(text(network("fedavg", kGrid + "[federation]\nnorm_bound = 1.0\n")),
              HasSubstr("federation.norm_bound: found together with [privacy], expected none"));
  EXPECT_THAT(text(network("fedavg", "[privacy]\nupdate_grid = 30\nupdate_range = 1000000.0\n")),
              HasSubstr("privacy.update_grid: found 30, expected less: sums of 1024 clients"));
  const auto mlp_text = [](const std::string& more) {
    return error_text([&] { after_rounds_of_mlp(more); });
  };
  EXPECT_THAT(mlp_text("scaling = \"extremes\"\n" + kGrid), HasSubstr("expected 'quantiles'"));
  EXPECT_THAT(mlp_text("upload = \"bits\"\n" + kGrid + "weights = \"equal\"\n"),
              HasSubstr("vote_size: found none, expected one"));
}

TEST(SummedMethodTest, UploadsOfAnotherShapeAreRefused) {
  const auto method = hand_made::method_of(network("fedavg", kGrid), some_images(0));
  const auto server = method->make_server();
  ModularVector vector = ModularVector::zero({{3, 8}});
  EXPECT_THAT(error_text([&] { server->accept(0, sum_message(vector)); }),
              HasSubstr("tensor 'fields': found 3 elements in 1 fields, expected"));
}

}  // namespace
}  // namespace bitfed
