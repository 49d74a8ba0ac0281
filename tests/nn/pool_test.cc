#include <gtest/gtest.h>

#include <numeric>

#include "bitfed/nn/layers/average_pool.h"
#include "bitfed/nn/layers/max_pool.h"
#include "tests/nn/layer_gradients.h"

namespace bitfed {
namespace {

// Values of which no two are within two steps of central differences.
void fill_distinct(Images* images) {
  std::vector<uint32_t> order(images->batch() * images->shape().image_floats());
  std::iota(order.begin(), order.end(), 0u);
  RandomStream({3, "order"}).shuffle(std::span(order));
  size_t at = 0;
  for_each_value(images, images->batch(),
                 [&](float* value) { *value = static_cast<float>(order[at++]) / 8 - 50; });
}

// A channel of an image of `width` pixels a row.
Images one_channel(size_t height, size_t width, const std::vector<float>& values) {
  Images images(1, padded_shape(height, width, 1, 0));
  for (size_t i = 0; i < values.size(); ++i) images.data()[i * 16] = values[i];
  return images;
}

TEST(MaxPoolTest, ByHand) {
  MaxPool layer(1, padded_shape(3, 5, 1, 0), 2);
  const Images input = one_channel(3, 5,
                                   {1, 2, -7, -8, 90,  //
                                    2, 0, -5, -5, 90,  //
                                    90, 90, 90, 90, 90});
  layer.forward(input, 1, Pass::kTraining);
  EXPECT_EQ(layer.output().shape(), padded_shape(1, 2, 1, 0));
  EXPECT_EQ(layer.output().data()[0], 2);
  EXPECT_EQ(layer.output().data()[16], -5);
  layer.output_gradient().data()[0] = 3;
  layer.output_gradient().data()[16] = 4;
  Images gradient(1, input.shape());
  gradient.data()[5] = gradient.data()[4 * 16] = 9;  // to be overwritten
  layer.backward(input, 1, &gradient);
  // Of equal values the first, row by row; nothing for what is left over.
  const std::vector<float> expected = {0, 3, 0, 0, 0,  //
                                       0, 0, 4, 0, 0,  //
                                       0, 0, 0, 0, 0};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(gradient.data()[i * 16], expected[i]) << i;
  EXPECT_TRUE(padding_is_zero(gradient, 1));
}

TEST(MaxPoolTest, GradientsAgreeWithCentralDifferences) {
  for (const size_t window : {1u, 2u, 3u}) {
    const ImageShape shape = padded_shape(5, 7, 3, 0);
    MaxPool layer(3, shape, window);
    EXPECT_EQ(layer.output().shape(), padded_shape(5 / window, 7 / window, 3, 0));
    Images input(3, shape);
    fill_distinct(&input);
    expect_gradients(&layer, &input, 2);
  }
}

TEST(AveragePoolTest, ByHand) {
  AveragePool layer(1, padded_shape(3, 5, 1, 0), 2);
  const Images input = one_channel(3, 5,
                                   {1, 2, -7, -8, 90,  //
                                    3, 4, -5, -4, 90,  //
                                    90, 90, 90, 90, 90});
  layer.forward(input, 1, Pass::kPrediction);
  EXPECT_EQ(layer.output().shape(), padded_shape(1, 2, 1, 0));
  EXPECT_EQ(layer.output().data()[0], 2.5f);
  EXPECT_EQ(layer.output().data()[16], -6);
}

TEST(AveragePoolTest, GradientsAgreeWithCentralDifferences) {
  for (const size_t window : {0u, 1u, 2u, 3u}) {
    const ImageShape shape = padded_shape(5, 7, 3, 0);
    AveragePool layer(3, shape, window);
    Images input(3, shape);
    fill_normal(4, &input);
    expect_gradients(&layer, &input, 2);
  }
}

TEST(AveragePoolTest, AWindowOfTheImagesSizeIsGlobal) {
  const ImageShape shape{4, 4, 16, 0};
  AveragePool global(2, shape);
  AveragePool window(2, shape, 4);
  Images input(2, shape);
  fill_normal(4, &input);
  global.forward(input, 2, Pass::kTraining);
  window.forward(input, 2, Pass::kTraining);
  float mean[16];
  average_pixels(input.row(1, 0), 16, 16, mean);
  for (size_t c = 0; c < 16; ++c) {
    EXPECT_EQ(global.output().row(1, 0)[c], mean[c]);
    EXPECT_EQ(window.output().row(1, 0)[c], mean[c]);
  }
}

}  // namespace
}  // namespace bitfed
