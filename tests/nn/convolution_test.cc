#include "bitfed/nn/layers/convolution.h"

#include <gtest/gtest.h>

#include "bitfed/bits/kernels.h"
#include "bitfed/nn/binary/binary_convolution.h"
#include "tests/nn/plain_layers.h"

namespace bitfed {
namespace {

struct Case {
  size_t batch, height, width, in, out, side, stride;
};

const Case kCases[] = {{2, 6, 6, 16, 16, 3, 1},
                       {3, 7, 5, 16, 32, 3, 2},
                       {1, 8, 6, 32, 16, 3, 2},
                       {2, 7, 8, 16, 16, 1, 2},
                       {1, 5, 5, 16, 16, 1, 1},
                       {2, 1, 1, 16, 16, 3, 2},
                       {2, 1, 4, 16, 16, 1, 2},
                       // several panels, the last a narrow one; several chunks of images
                       {1, 3, 4, 96, 80, 3, 1},
                       {1, 4, 5, 16, 144, 3, 2},
                       {3, 11, 11, 16, 96, 3, 1}};

void fill(const ImageShape& shape, uint64_t seed, Images* images) {
  RandomStream random({seed, "images"});
  for (size_t i = 0; i < images->batch(); ++i) {
    for (size_t y = 0; y < shape.height; ++y) {
      for (size_t k = 0; k < shape.width * shape.channels; ++k)
        images->row(i, y)[k] = static_cast<float>(random.normal());
    }
  }
}

plain::Values numbers_of(Layer& layer) {
  const std::vector<float> numbers = layer.deployed()[0];
  return {numbers.begin(), numbers.end()};
}

// Output, and the gradients of sum(weight of an output * output): a product is linear in either factor, so
// the gradient of one is the sum of what it meets of the other.
void expect_plain(const Case& c, const Images& input, Convolution* layer) {
  layer->forward(input, c.batch, Pass::kTraining);
  const plain::Batch x = plain::batch_of(input, c.batch);
  const plain::Values weights = numbers_of(*layer);
  const plain::Batch y = plain::convolve(x, weights, c.out, c.side, c.stride);
  ASSERT_EQ(layer->output().shape(), (ImageShape{y.height, y.width, c.out, 0}));
  for (size_t i = 0; i < c.batch; ++i) {
    for (size_t k = 0; k < y.images[i].size(); ++k)
      ASSERT_NEAR(layer->output().row(i, 0)[k], y.images[i][k], 1e-3);
  }
  fill(layer->output().shape(), 5, &layer->output_gradient());
  const plain::Batch g = plain::batch_of(layer->output_gradient(), c.batch);
  Images gradient(c.batch, input.shape().without_border());
  std::fill_n(gradient.data(), c.batch * gradient.shape().image_floats(), 1e9f);  // must be overwritten
  layer->backward(input, c.batch, &gradient);
  Images both(c.batch, gradient.shape());
  fill(gradient.shape(), 6, &both);
  const Images beside = both;
  layer->backward_beside(input, c.batch, both, &both);
  for (size_t k = 0; k < c.batch * gradient.shape().image_floats(); ++k)
    ASSERT_NEAR(both.data()[k], gradient.data()[k] + beside.data()[k], 1e-4);
  const auto objective = [&](const plain::Batch& moved) {
    double sum = 0;
    const plain::Batch out = plain::convolve(moved, weights, c.out, c.side, c.stride);
    for (size_t i = 0; i < c.batch; ++i) {
      for (size_t k = 0; k < out.images[i].size(); ++k) sum += out.images[i][k] * g.images[i][k];
    }
    return sum;
  };
  RandomStream random({6, "which"});
  for (size_t trial = 0; trial < 40; ++trial) {
    const size_t i = random.below(static_cast<uint32_t>(c.batch));
    const size_t k = random.below(static_cast<uint32_t>(x.images[i].size()));
    plain::Batch up = x;
    plain::Batch down = x;
    up.images[i][k] += 0.5;
    down.images[i][k] -= 0.5;
    EXPECT_NEAR(gradient.row(i, 0)[k], objective(up) - objective(down), 1e-3) << i << " " << k;
  }
}

TEST(ConvolutionTest, AgreesWithPlainLoops) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << c.height << " x " << c.width << ", side " << c.side << ", stride "
                                    << c.stride);
    const ImageShape shape{c.height, c.width, c.in, 1};
    Images input(c.batch, shape);
    fill(shape, 4, &input);
    Convolution layer(c.batch, shape, c.out, "layer", {c.side, c.stride});
    layer.start(RandomStream({3, "layer"}));
    expect_plain(c, input, &layer);
  }
}

TEST(ConvolutionTest, WithBinaryWeightsAgreesWithPlainLoops) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << c.height << " x " << c.width << ", side " << c.side << ", stride "
                                    << c.stride);
    const ImageShape shape{c.height, c.width, c.in, 1};
    Images input(c.batch, shape);
    fill(shape, 4, &input);
    BinaryWeightConvolution layer(c.batch, shape, c.out, {}, "layer", {c.side, c.stride});
    layer.start(RandomStream({3, "layer"}));
    layer.begin_round();
    layer.begin_epoch(0.2);
    expect_plain(c, input, &layer);
    for (const double number : numbers_of(layer)) ASSERT_EQ(std::fabs(number), 1);
  }
}

// Channels that are there only to fill lanes change nothing of the others.
TEST(ConvolutionTest, IdleChannels) {
  const ImageShape narrow = shape_of_lanes(5, 4, 10, 1);
  const ImageShape wide{5, 4, 16, 1};
  Convolution layer(2, narrow, 12, "narrow");
  Convolution full(2, wide, 16, "wide");
  layer.start(RandomStream({3, "layer"}));
  EXPECT_EQ(layer.parameters()[0]->count(), 9u * 10 * 12);
  full.parameters()[0]->values = layer.parameters()[0]->values;
  full.parameters()[0]->values.columns = 16;
  Images input(2, narrow);
  fill(narrow, 4, &input);
  for (size_t image = 0; image < 2; ++image) {
    for (size_t y = 0; y < 5; ++y) {
      for (size_t k = 0; k < size_t{4} * 16; ++k) {
        if (k % 16 >= 10) input.row(image, y)[k] = 0;
      }
    }
  }
  layer.forward(input, 2, Pass::kTraining);
  full.forward(input, 2, Pass::kTraining);
  const size_t count = 2 * layer.output().shape().image_floats();
  RandomStream random({6, "gradient"});
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(layer.output().data()[i], full.output().data()[i]);
    if (i % 16 >= 12) {
      EXPECT_EQ(layer.output().data()[i], 0);
    }
    const float gradient = i % 16 < 12 ? static_cast<float>(random.normal()) : 0.0f;
    layer.output_gradient().data()[i] = full.output_gradient().data()[i] = gradient;
  }
  Images of_layer(2, narrow.without_border());
  Images of_full(2, wide.without_border());
  layer.backward(input, 2, &of_layer);
  full.backward(input, 2, &of_full);
  for (size_t i = 0; i < 2 * of_full.shape().image_floats(); ++i) {
    EXPECT_EQ(of_layer.data()[i], of_full.data()[i]);
    if (i % 16 >= 10) {
      EXPECT_EQ(of_layer.data()[i], 0);
    }
  }
}

}  // namespace
}  // namespace bitfed
