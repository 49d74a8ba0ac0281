#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bitfed/zoo/network/network_model.h"
#include "tests/base/error_text.h"
#include "tests/federated/dark_and_light.h"
#include "tests/federated/hand_made.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

const std::string kRecipe =
    "rounds = 4\n[model]\nname = \"cnn4\"\nwidth = 16\n[client]\nbatch = 8\nepochs = 2\n[method]\nname = "
    "\"fedmud\"\n";

std::vector<float> weights_of(const State& broadcast) {
  return broadcast.values<float>("blocks.1.convolution.weights", {9 * 16, 32});
}

// The second to fourth convolution in factors, the others in full. 4608 weights: 2 blocks of 7 x 7, 18432: 5
// of 8 x 8, 73728: 18 of 8 x 8; two factors each.
TEST(FedMudTest, UploadsFactors) {
  const auto method = hand_made::method_of(kRecipe, some_images(0), 3);
  const State upload =
      method->make_client()->train(method->make_server()->broadcast(1), some_images(17), context_of(4));
  const size_t factors = 2 * (2 * 49 + 5 * 64 + 18 * 64);
  const size_t full = 9 * 16 + 128 * 2 + 4 * (16 + 32 + 64 + 128);
  EXPECT_EQ(upload.tensor_bytes(), 4 * (factors + full) + 4 + 4);
  EXPECT_TRUE(upload.has("blocks.0.convolution.weights"));
  EXPECT_FALSE(upload.has("blocks.1.convolution.weights"));
  EXPECT_TRUE(upload.has("blocks.1.convolution.weights.factors"));
  EXPECT_TRUE(upload.has("dense.weights"));
}

// The factors of two clients: the server's weights move by the mean of what each would move them by, and a
// client that learned nothing moves them by nothing.
TEST(FedMudTest, TheMeanOfUpdatesIsTheUpdateOfTheMean) {
  const auto method = hand_made::method_of(kRecipe, some_images(0), 3);
  const State before = method->make_server()->broadcast(1);
  const State upload = method->make_client()->train(before, some_images(16), context_of(1));
  State nothing;
  for (const Tensor& tensor : upload.tensors()) {
    Tensor changed = tensor;
    if (tensor.name.ends_with(".factors")) std::fill(changed.bytes.begin(), changed.bytes.end(), uint8_t{0});
    nothing.add(changed);
  }
  const auto after = [&](const std::vector<const State*>& uploads) {
    const auto server = method->make_server();
    for (uint32_t client = 0; client < uploads.size(); ++client) server->accept(client, *uploads[client]);
    server->finish_round(1);
    return weights_of(server->broadcast(2));
  };
  const std::vector<float> w = weights_of(before);
  const std::vector<float> alone = after({&upload});
  const std::vector<float> halved = after({&upload, &nothing});
  EXPECT_EQ(after({&nothing}), w);
  double moved = 0;
  for (size_t i = 0; i < w.size(); ++i) {
    EXPECT_NEAR(halved[i] - w[i], (alone[i] - w[i]) / 2, 1e-6);
    moved += std::fabs(alone[i] - w[i]);
  }
  EXPECT_GT(moved, 0.01);
}

TEST(FedMudTest, RefusesHostileUploads) {
  const auto method = hand_made::method_of(kRecipe, some_images(0), 3);
  const auto server = method->make_server();
  const State good = method->make_client()->train(server->broadcast(1), some_images(9), context_of(1));
  const auto refused = [&](const std::vector<uint64_t>& shape, float value) {
    State state;
    for (const Tensor& tensor : good.tensors()) {
      if (tensor.name != "blocks.1.convolution.weights.factors") state.add(tensor);
    }
    state.add("blocks.1.convolution.weights.factors", shape, std::vector<float>(shape[0], value));
    return error_text([&] { server->accept(0, state); });
  };
  EXPECT_EQ(refused({196}, 0), "");
  EXPECT_THAT(refused({195}, 0), HasSubstr("blocks.1.convolution.weights.factors"));
  EXPECT_THAT(refused({196}, NAN), HasSubstr("expected finite numbers"));
  EXPECT_THAT(refused({196}, 1e30f), HasSubstr("found a parameter beyond"));
}

}  // namespace
}  // namespace bitfed
