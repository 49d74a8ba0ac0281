#include "bitfed/nn/layers/biased_activation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/nn/layer_gradients.h"

namespace bitfed {
namespace {

constexpr Activation kActivations[] = {Activation::kNone, Activation::kRelu, Activation::kHardtanh};

TEST(ActivationLayerTest, GradientsAgreeWithCentralDifferences) {
  for (const Activation activation : kActivations) {
    for (const size_t border : {0u, 2u}) {
      const ImageShape shape = padded_shape(3, 2, 18, 0);
      ActivationLayer layer(3, shape, activation, border);
      EXPECT_EQ(layer.output().shape(), shape.with_border(border));
      Images input(3, shape);
      fill_sixteenths(4, &input);
      expect_gradients(&layer, &input, 2);
    }
  }
}

TEST(ActivationLayerTest, ByHand) {
  const ImageShape shape{1, 1, 16, 0};
  Images input(1, shape);
  const float values[] = {-3, -1, -0.5f, 0, 0.5f, 1, 3};
  std::copy(std::begin(values), std::end(values), input.data());
  const auto outputs = [&](Activation activation) {
    ActivationLayer layer(1, shape, activation);
    layer.forward(input, 1, Pass::kPrediction);
    return std::vector<float>(layer.output().data(), layer.output().data() + 7);
  };
  EXPECT_EQ(outputs(Activation::kNone), std::vector<float>({-3, -1, -0.5f, 0, 0.5f, 1, 3}));
  EXPECT_EQ(outputs(Activation::kRelu), std::vector<float>({0, 0, 0, 0, 0.5f, 1, 3}));
  EXPECT_EQ(outputs(Activation::kHardtanh), std::vector<float>({-1, -1, -0.5f, 0, 0.5f, 1, 1}));
}

TEST(BiasedActivationTest, GradientsAgreeWithCentralDifferences) {
  for (const Activation activation : kActivations) {
    for (const size_t border : {0u, 1u}) {
      const ImageShape shape = padded_shape(3, 2, 18, 0);
      BiasedActivation layer(3, shape, activation, "layer", 10, border);
      Parameter& bias = *layer.parameters()[0];
      EXPECT_EQ(bias.name, "layer.bias");
      ASSERT_EQ(bias.count(), 18u);
      for (size_t c = 0; c < 18; ++c) bias.values.row(0)[c] = static_cast<float>(c % 5) / 4 - 0.5f;
      Images input(3, shape);
      fill_sixteenths(4, &input);
      expect_gradients(&layer, &input, 2);
      EXPECT_EQ(bias.gradient.row(0)[18], 0);
    }
  }
}

TEST(BiasedActivationTest, IsInitialisedWithinTheInverseRootOfItsFanIn) {
  BiasedActivation layer(1, padded_shape(1, 1, 1000, 0), Activation::kRelu, "layer", 25);
  layer.initialise(RandomStream({1, "start"}));
  const Parameter& bias = *layer.parameters()[0];
  const auto [min, max] = std::minmax_element(bias.values.row(0), bias.values.row(0) + 1000);
  EXPECT_GE(*min, -0.2f);
  EXPECT_LT(*min, -0.19f);
  EXPECT_LE(*max, 0.2f);
  EXPECT_GT(*max, 0.19f);
  EXPECT_EQ(bias.values.row(0)[1000], 0);  // padding
}

}  // namespace
}  // namespace bitfed
