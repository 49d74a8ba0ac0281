#include "bitfed/nn/layers/dropout.h"

#include <gtest/gtest.h>

#include "tests/nn/layer_gradients.h"

namespace bitfed {
namespace {

std::vector<float> used_values(const Images& images) {
  std::vector<float> values;
  Images copy = images;
  for_each_value(&copy, copy.batch(), [&](const float* value) { values.push_back(*value); });
  return values;
}

// What is left of ones.
std::vector<float> mask_of(Dropout* layer) {
  Images ones(layer->output().batch(), layer->output().shape());
  for_each_value(&ones, ones.batch(), [](float* value) { *value = 1; });
  layer->forward(ones, ones.batch(), Pass::kTraining);
  return used_values(layer->output());
}

TEST(DropoutTest, KeepsAShareOfValuesAndScalesThem) {
  Dropout layer(10, {10, 10, 16, 0}, 0.2);
  layer.seed(RandomStream({1, "dropout"}));
  const std::vector<float> mask = mask_of(&layer);
  size_t kept = 0;
  for (const float value : mask) {
    ASSERT_TRUE(value == 0 || value == 1.25f);
    kept += value > 0 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(kept) / static_cast<double>(mask.size()), 0.8, 0.01);
}

TEST(DropoutTest, PredictionChangesNothing) {
  const ImageShape shape = padded_shape(2, 3, 5, 0);
  Dropout layer(2, shape, 0.5);
  Images input(2, shape);
  fill_normal(3, &input);
  layer.forward(input, 2, Pass::kPrediction);
  EXPECT_EQ(used_values(layer.output()), used_values(input));
}

TEST(DropoutTest, ARateOf0KeepsAll) {
  Dropout layer(2, {2, 3, 16, 0}, 0);
  EXPECT_EQ(mask_of(&layer), std::vector<float>(size_t{2} * 2 * 3 * 16, 1));
}

TEST(DropoutTest, GradientsAgreeWithCentralDifferences) {
  const ImageShape shape = padded_shape(2, 3, 18, 0);
  Dropout layer(3, shape, 0.5);
  Images input(3, shape);
  fill_normal(3, &input);
  expect_gradients(&layer, &input, 2);
}

TEST(DropoutTest, DrawsDependOnStreamPassAndPositionAlone) {
  const RandomStream stream({5, "draws"});
  Dropout layer(4, padded_shape(3, 3, 10, 0), 0.5);
  layer.seed(stream);
  const std::vector<float> first = mask_of(&layer);
  const std::vector<float> second = mask_of(&layer);
  EXPECT_NE(first, second);
  layer.seed(stream);
  EXPECT_EQ(mask_of(&layer), first);
  EXPECT_EQ(mask_of(&layer), second);
  layer.seed(stream.substream(1));
  EXPECT_NE(mask_of(&layer), first);
  // A smaller batch, and channels without padding.
  Dropout small(2, {3, 3, 10, 0}, 0.5);
  small.seed(stream);
  EXPECT_EQ(mask_of(&small), std::vector<float>(first.begin(), first.begin() + 2 * 3 * 3 * 10));
}

}  // namespace
}  // namespace bitfed
