#include "bitfed/nn/layers/dense.h"

#include <gtest/gtest.h>

#include "tests/nn/layer_gradients.h"

namespace bitfed {
namespace {

TEST(DenseTest, GradientsAgreeWithCentralDifferences) {
  for (const size_t units : {1u, 16u, 21u}) {
    for (const Bias bias : {Bias::kNone, Bias::kLearned}) {
      const ImageShape shape = padded_shape(2, 3, 5, 0);
      Dense layer(3, shape, units, "layer", bias);
      layer.initialise(RandomStream({2, "layer"}));
      EXPECT_EQ(layer.output().shape(), padded_shape(1, 1, units, 0));
      Images input(3, shape);
      fill_normal(4, &input);
      expect_gradients(&layer, &input, 2);
    }
  }
}

// Its outputs' padding meets rows of weights that stay 0.
TEST(DenseTest, AHiddenLayersPaddingStaysZero) {
  Dense hidden(2, {1, 1, 16, 0}, 21, "hidden", Bias::kLearned);
  Dense last(2, hidden.output().shape(), 5, "last");
  hidden.initialise(RandomStream({2, "hidden"}));
  last.initialise(RandomStream({2, "last"}));
  EXPECT_EQ(last.parameters()[0]->count(), 21u * 5);
  Images input(2, {1, 1, 16, 0});
  fill_normal(4, &input);
  for (int step = 0; step < 3; ++step) {
    hidden.forward(input, 2, Pass::kTraining);
    last.forward(hidden.output(), 2, Pass::kTraining);
    EXPECT_TRUE(padding_is_zero(hidden.output(), 2));
    EXPECT_TRUE(padding_is_zero(last.output(), 2));
    fill_normal(7, &last.output_gradient());
    last.backward(hidden.output(), 2, &hidden.output_gradient());
    EXPECT_TRUE(padding_is_zero(hidden.output_gradient(), 2));
    hidden.backward(input, 2, nullptr);
    for (Layer* layer : {&hidden, &last}) {
      for (Parameter* parameter : layer->parameters()) {
        neural_kernels().descend(parameter->values.values.data(), parameter->gradient.values.data(),
                                 parameter->values.values.size(), 0.1f);
      }
    }
  }
}

// A first layer: pixels as they come.
TEST(DenseTest, TakesImagesOfAnyShape) {
  const ImageShape shape{3, 5, 3, 0};
  Dense layer(2, shape, 2, "layer");
  layer.initialise(RandomStream({2, "layer"}));
  Images input(2, shape);
  fill_normal(4, &input);
  layer.forward(input, 2, Pass::kTraining);
  const std::vector<float> weights = layer.parameters()[0]->to_vector();
  ASSERT_EQ(weights.size(), 45u * 2);
  double expected = 0;
  for (size_t i = 0; i < 45; ++i) expected += static_cast<double>(input.row(1, 0)[i]) * weights[2 * i + 1];
  EXPECT_NEAR(layer.output().row(1, 0)[1], expected, 1e-5);
  fill_normal(7, &layer.output_gradient());
  layer.backward(input, 2, nullptr);
  const float* of_first = layer.output_gradient().row(0, 0);
  const float* of_second = layer.output_gradient().row(1, 0);
  EXPECT_NEAR(layer.parameters()[0]->gradient.row(44)[1],
              of_first[1] * input.row(0, 0)[44] + of_second[1] * input.row(1, 0)[44], 1e-5);
}

}  // namespace
}  // namespace bitfed
