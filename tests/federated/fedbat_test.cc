#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "bitfed/federated/arithmetic/binarised_update.h"
#include "bitfed/zoo/network/network_model.h"
#include "tests/base/error_text.h"
#include "tests/federated/dark_and_light.h"
#include "tests/federated/hand_made.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

const std::string kRecipe =
    "rounds = 4\n[model]\nname = \"cnn4\"\nwidth = 16\n[client]\nbatch = 8\nepochs = 2\n[method]\nname = "
    "\"fedbat\"\n";

constexpr size_t kDense = 128 * 2;

State changed(const State& state, const std::string& name, const Tensor& tensor) {
  State result;
  for (const Tensor& old : state.tensors()) result.add(old.name == name ? tensor : old);
  return result;
}

// One bit a weight, one number a layer; batch norm in full.
TEST(FedBatTest, UploadsBits) {
  const auto method = hand_made::method_of(kRecipe, some_images(0), 3);
  const State broadcast = method->make_server()->broadcast(1);
  const State upload = method->make_client()->train(broadcast, some_images(17), context_of(4));
  const size_t weights = 9 * (1 * 16 + 16 * 32 + 32 * 64 + 64 * 128) + kDense;
  EXPECT_EQ(upload.tensor_bytes(), weights / 8 + 4 * 5 + 4 * 4 * (16 + 32 + 64 + 128) + 4);
  EXPECT_EQ(upload.values<uint8_t>("dense.weights", {kDense / 8}).size(), kDense / 8);
  const auto step = upload.scalar<float>("blocks.2.convolution.weights.step");
  EXPECT_GE(step, BinarisedUpdate::kMinAlpha);
  EXPECT_LE(step, BinarisedUpdate::kMaxAlpha);
}

// The mean by samples of w + step * sign: 3 of 4 samples say +step, 1 says -step, hence w + step / 2.
TEST(FedBatTest, MeanOfSigns) {
  const auto method = hand_made::method_of(kRecipe, some_images(0), 3);
  const auto server = method->make_server();
  const State before = server->broadcast(1);
  const State upload = method->make_client()->train(before, some_images(9), context_of(1));
  const float step = 0.03125f;
  const auto saying = [&](uint8_t bits, uint32_t samples) {
    State state = changed(upload, "dense.weights",
                          {"dense.weights", Dtype::kU8, {kDense / 8}, Bytes(kDense / 8, bits)});
    State scalars;
    scalars.add_scalar("dense.weights.step", step);
    scalars.add_scalar("samples", samples);
    for (const Tensor& tensor : scalars.tensors()) state = changed(state, tensor.name, tensor);
    return state;
  };
  server->accept(0, saying(0xff, 3));
  server->accept(1, saying(0x00, 1));
  server->finish_round(1);
  const auto old = before.values<float>("dense.weights", {128, 2});
  const auto now = server->broadcast(2).values<float>("dense.weights", {128, 2});
  for (size_t i = 0; i < old.size(); ++i) EXPECT_NEAR(now[i], old[i] + step / 2, 1e-7);
}

TEST(FedBatTest, RefusesHostileUploads) {
  const auto method = hand_made::method_of(kRecipe, some_images(0), 3);
  const auto server = method->make_server();
  const State good = method->make_client()->train(server->broadcast(1), some_images(9), context_of(1));
  const auto with_step = [&](float step) {
    State scalars;
    scalars.add_scalar("dense.weights.step", step);
    return error_text([&] { server->accept(0, changed(good, "dense.weights.step", scalars.tensors()[0])); });
  };
  EXPECT_THAT(with_step(0.06f), HasSubstr("'dense.weights.step': found 0.06, expected 0.0005 to 0.05"));
  EXPECT_THAT(with_step(NAN), HasSubstr("found nan"));
  const std::string few = error_text([&] {
    server->accept(0, changed(good, "dense.weights", {"dense.weights", Dtype::kU8, {1}, Bytes(1, 0)}));
  });
  EXPECT_THAT(few, HasSubstr("dense.weights"));
}

}  // namespace
}  // namespace bitfed
