#include "bitfed/nn/layers/biased_pool.h"

#include <gtest/gtest.h>

#include <cstring>

#include "bitfed/bits/kernels.h"
#include "bitfed/nn/layers/biased_activation.h"
#include "bitfed/nn/layers/max_pool.h"
#include "bitfed/nn/layers/sequence.h"
#include "tests/nn/layer_gradients.h"

namespace bitfed {
namespace {

constexpr size_t kBatch = 3;
constexpr size_t kImages = 2;
constexpr Activation kActivations[] = {Activation::kNone, Activation::kRelu, Activation::kHardtanh};

bool same_bits(const Images& a, const Images& b) {
  const size_t count = kImages * a.shape().image_floats();
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), count * sizeof(float)) == 0;
}

// A bias and an activation, then a pool, by two layers and by one; values on a grid, so that many are equal.
void expect_same_bits(const ImageShape& shape, Activation activation) {
  BiasedActivation first(kBatch, shape, activation, "layer", 10);
  MaxPool second(kBatch, shape, 2);
  BiasedPool both(kBatch, shape, activation, "layer", 10);
  const RandomStream start({1, "start"});
  first.initialise(start);
  both.initialise(start);
  Parameter& bias = *first.parameters()[0];
  Parameter& own_bias = *both.parameters()[0];
  EXPECT_EQ(own_bias.name, "layer.bias");
  EXPECT_EQ(own_bias.to_vector(), bias.to_vector());
  for (size_t c = 0; c < bias.count(); ++c)
    bias.values.row(0)[c] = own_bias.values.row(0)[c] = static_cast<float>(c % 5) / 4 - 0.5f;
  Images input(kBatch, shape);
  fill_sixteenths(4, &input);
  first.forward(input, kImages, Pass::kTraining);
  second.forward(first.output(), kImages, Pass::kTraining);
  both.forward(input, kImages, Pass::kTraining);
  EXPECT_TRUE(same_bits(both.output(), second.output()));
  fill_normal(7, &second.output_gradient());
  fill_normal(7, &both.output_gradient());
  Images gradient(kBatch, shape);
  second.backward(first.output(), kImages, &first.output_gradient());
  first.backward(input, kImages, &gradient);
  both.backward(input, kImages, &input);  // in the input's place
  EXPECT_TRUE(same_bits(input, gradient));
  EXPECT_EQ(own_bias.gradient.values.size(), bias.gradient.values.size());
  EXPECT_EQ(std::memcmp(own_bias.gradient.row(0), bias.gradient.row(0), shape.channels * sizeof(float)), 0);
}

TEST(BiasedPoolTest, HasTheBitsOfItsTwoLayers) {
  const std::string before = kernels().name;
  for (const Kernels* table : supported_kernels()) {
    force_kernels(table->name);
    for (const Activation activation : kActivations) {
      for (const size_t side : {2u, 3u, 8u, 9u}) {
        for (const size_t channels : {1u, 18u, 64u}) {
          SCOPED_TRACE(table->name + (" " + std::to_string(side)) + " " + std::to_string(channels));
          expect_same_bits(padded_shape(side, side + 1, channels, 0), activation);
        }
      }
    }
  }
  force_kernels(before);
}

// Streams that later layers draw from do not depend on what is fused.
TEST(BiasedPoolTest, TakesThePlacesOfItsTwoLayers) {
  const ImageShape shape{4, 4, 16, 0};
  const auto draws = [](Sequence* layers) {
    std::vector<uint32_t> first;
    layers->for_each_layer(RandomStream({1, "places"}), [&](Layer&, const RandomStream& own) {
      RandomStream stream = own;
      first.push_back(stream.next_u32());
    });
    return first;
  };
  Sequence two, one;
  two.add(std::make_unique<BiasedActivation>(1, shape, Activation::kRelu, "layer", 10));
  two.add(std::make_unique<MaxPool>(1, shape, 2));
  one.add(std::make_unique<BiasedPool>(1, shape, Activation::kRelu, "layer", 10), 2);
  for (Sequence* layers : {&two, &one}) layers->add(std::make_unique<MaxPool>(1, ImageShape{2, 2, 16, 0}, 2));
  EXPECT_EQ(draws(&one)[0], draws(&two)[0]);
  EXPECT_EQ(draws(&one)[1], draws(&two)[2]);
}

}  // namespace
}  // namespace bitfed
