#include "bitfed/nn/convolution/convolution.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bitfed/bits/kernels.h"
#include "bitfed/nn/binary/binary_convolution.h"
#include "tests/nn/plain_layers.h"

namespace bitfed {
namespace {

struct Case {
  size_t batch, height, width, in, out;
  ConvolutionKernel kernel;
  size_t border;

  ImageShape input() const { return {height, width, in, border}; }
};

// Every kernel on images of odd, even and different sides, as small as the kernel allows.
std::vector<Case> kernel_cases() {
  std::vector<Case> cases;
  for (const size_t side : {1u, 3u, 5u, 7u}) {
    for (const size_t stride : {1u, 2u, 3u}) {
      for (const bool valid : {false, true}) {
        const ConvolutionKernel kernel{side, stride, valid};
        const size_t min_side = valid ? side : 1;
        cases.push_back({2, min_side + 4, min_side + 7, 16, 16, kernel, kernel.padding()});
        cases.push_back({1, min_side, min_side + 2, 16, 16, kernel, kernel.padding() + 2});
        cases.push_back({1, min_side + 3, min_side, 16, 16, kernel, kernel.padding() + 1});
      }
    }
  }
  return cases;
}

// One pixel of border, as built-in networks have it; several panels, the last a narrow one; several chunks of
// images.
const Case kCases[] = {{2, 6, 6, 16, 16, {3, 1}, 1},  {3, 7, 5, 16, 32, {3, 2}, 1},
                       {1, 8, 6, 32, 16, {3, 2}, 1},  {2, 7, 8, 16, 16, {1, 2}, 1},
                       {1, 5, 5, 16, 16, {1, 1}, 1},  {2, 1, 1, 16, 16, {3, 2}, 1},
                       {2, 1, 4, 16, 16, {1, 2}, 1},  {1, 3, 4, 96, 80, {3, 1}, 1},
                       {1, 4, 5, 16, 144, {3, 2}, 1}, {3, 11, 11, 16, 96, {3, 1}, 1}};

testing::Message named(const Case& c) {
  return testing::Message() << c.height << " x " << c.width << ", side " << c.kernel.side << ", stride "
                            << c.kernel.stride << (c.kernel.valid ? ", valid, " : ", same, ")
                            << kernels().name;
}

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

// Output, and the gradients of sum(gradient * output), also added to another path's.
void expect_plain(const Case& c, const Images& input, Convolution* layer) {
  layer->forward(input, c.batch, Pass::kTraining);
  const plain::Batch x = plain::batch_of(input, c.batch);
  const plain::Values weights = numbers_of(*layer);
  const plain::Batch y = plain::convolve(x, weights, c.out, c.kernel);
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
  const Images other = both;
  Images apart(c.batch, gradient.shape());
  layer->backward_adding(input, c.batch, other, &apart);
  layer->backward_adding(input, c.batch, both, &both);
  for (size_t k = 0; k < c.batch * gradient.shape().image_floats(); ++k) {
    ASSERT_NEAR(both.data()[k], gradient.data()[k] + other.data()[k], 1e-4);
    ASSERT_EQ(apart.data()[k], both.data()[k]);
  }
  const plain::ConvolutionGradients expected = plain::convolve_back(x, weights, g, c.kernel);
  for (size_t i = 0; i < c.batch; ++i) {
    for (size_t k = 0; k < expected.inputs[i].size(); ++k)
      ASSERT_NEAR(gradient.row(i, 0)[k], expected.inputs[i][k], 1e-3) << i << " " << k;
  }
  const Matrix& of_weights = layer->weight_gradient();
  for (size_t k = 0; k < expected.weights.size(); ++k)
    ASSERT_NEAR(of_weights.row(k / c.out)[k % c.out], expected.weights[k], 1e-3) << k;
}

void expect_plain(const Case& c) {
  SCOPED_TRACE(named(c));
  Images input(c.batch, c.input());
  fill(c.input(), 4, &input);
  Convolution layer(c.batch, c.input(), c.out, "layer", c.kernel);
  layer.initialise(RandomStream({3, "layer"}));
  expect_plain(c, input, &layer);
}

TEST(ConvolutionTest, AgreesWithPlainLoops) {
  for (const Case& c : kCases) expect_plain(c);
}

TEST(ConvolutionTest, EveryKernelAgreesWithPlainLoopsOnEveryInstructionSet) {
  const std::string before = kernels().name;
  for (const Kernels* table : supported_kernels()) {
    force_kernels(table->name);
    for (const Case& c : kernel_cases()) expect_plain(c);
  }
  force_kernels(before);
}

// Of a first layer's weights: a chain of fused multiply-adds per image, then the images' sums in sequence. A
// device must keep this order to have the same bits.
TEST(ConvolutionTest, AFirstLayerSumsImageByImageOnEveryInstructionSet) {
  const std::string before = kernels().name;
  constexpr int kHeight = 7;
  constexpr int kWidth = 6;
  constexpr size_t kImages = 5;
  constexpr size_t kOut = 48;
  for (const size_t in : {1u, 3u}) {
    const ImageShape shape{kHeight, kWidth, in, 1};
    Images input(kImages, shape);
    fill(shape, 4, &input);
    for (const Kernels* table : supported_kernels()) {
      force_kernels(table->name);
      SCOPED_TRACE(table->name);
      Convolution layer(kImages, shape, kOut, "layer");
      layer.initialise(RandomStream({3, "layer"}));
      layer.forward(input, kImages, Pass::kTraining);
      fill(layer.output().shape(), 5, &layer.output_gradient());
      const Images& gradient = layer.output_gradient();
      layer.backward(input, kImages, nullptr);
      for (size_t weight = 0; weight < 9 * in * kOut; ++weight) {
        const size_t row = weight / kOut;
        const int dy = static_cast<int>(row / in / 3) - 1;
        const int dx = static_cast<int>(row / in % 3) - 1;
        float total = 0;
        for (size_t image = 0; image < kImages; ++image) {
          float sum = 0;
          for (int pixel = 0; pixel < kHeight * kWidth; ++pixel) {
            const int y = pixel / kWidth + dy;
            const int x = pixel % kWidth + dx;
            const bool inside = y >= 0 && y < kHeight && x >= 0 && x < kWidth;
            const float value =
                inside ? input.row(image, static_cast<size_t>(y))[static_cast<size_t>(x) * in + row % in] : 0;
            const float of_output = gradient.row(image, 0)[static_cast<size_t>(pixel) * kOut + weight % kOut];
            sum = std::fma(value, of_output, sum);
          }
          total = image == 0 ? sum : total + sum;
        }
        ASSERT_EQ(layer.weight_gradient().row(row)[weight % kOut], total) << weight;
      }
    }
  }
  force_kernels(before);
}

// One chain of fused multiply-adds for every sum, by pixel of the output and filter, whatever the share of
// zeros: those of a sparse gradient are left out.
void expect_chains(const Case& c, uint32_t zeros_of_ten) {
  SCOPED_TRACE(named(c));
  Images input(c.batch, c.input());
  fill(c.input(), 4, &input);
  Convolution layer(c.batch, c.input(), c.out, "layer", c.kernel);
  layer.initialise(RandomStream({3, "layer"}));
  layer.forward(input, c.batch, Pass::kTraining);
  fill(layer.output().shape(), 5, &layer.output_gradient());
  const size_t pixels = layer.output().shape().pixels();
  RandomStream random({6, "zeros"});
  for (size_t k = 0; k < c.batch * pixels * c.out; ++k) {
    if (random.below(10) < zeros_of_ten) layer.output_gradient().data()[k] = 0;
  }
  const Images g = layer.output_gradient();
  const std::vector<float> weights = layer.deployed()[0];
  Images other(c.batch, input.shape().without_border());
  fill(other.shape(), 7, &other);
  Matrix of_weights(c.kernel.taps() * c.in, c.out);
  Images of_input(c.batch, other.shape());
  Images added = other;
  for (size_t image = 0; image < c.batch; ++image) {
    plain::for_each_tap(c.height, c.width, c.kernel, [&](size_t pixel, size_t from, size_t tap) {
      const float* gradient = g.row(image, 0) + pixel * c.out;
      const float* x = input.row(image, from / c.width) + from % c.width * c.in;
      for (size_t a = 0; a < c.in; ++a) {
        const float* row = weights.data() + (tap * c.in + a) * c.out;
        float& sum = of_input.row(image, 0)[from * c.in + a];
        float& sum_added = added.row(image, 0)[from * c.in + a];
        for (size_t o = 0; o < c.out; ++o) {
          float& of_weight = of_weights.row(tap * c.in + a)[o];
          of_weight = std::fma(x[a], gradient[o], of_weight);
          sum = std::fma(row[o], gradient[o], sum);
          sum_added = std::fma(row[o], gradient[o], sum_added);
        }
      }
    });
  }
  Images result(c.batch, other.shape());
  std::fill_n(result.data(), c.batch * other.shape().image_floats(), 1e9f);  // must be overwritten
  layer.backward(input, c.batch, &result);
  Images both(c.batch, other.shape());
  layer.backward_adding(input, c.batch, other, &both);
  for (size_t k = 0; k < c.batch * other.shape().image_floats(); ++k) {
    ASSERT_EQ(result.data()[k], of_input.data()[k]) << k;
    const float whole = c.kernel.stride == 1 ? added.data()[k] : other.data()[k] + of_input.data()[k];
    ASSERT_EQ(both.data()[k], whole) << k;
  }
  for (size_t k = 0; k < c.kernel.taps() * c.in * c.out; ++k)
    ASSERT_EQ(layer.weight_gradient().row(k / c.out)[k % c.out], of_weights.row(k / c.out)[k % c.out]) << k;
}

TEST(ConvolutionTest, SumsAreChainsWhateverTheShareOfZerosOnEveryInstructionSet) {
  const std::string before = kernels().name;
  std::vector<Case> cases = kernel_cases();
  cases.insert(cases.end(), std::begin(kCases), std::end(kCases));
  for (const Kernels* table : supported_kernels()) {
    force_kernels(table->name);
    for (const Case& c : cases) {
      for (const uint32_t zeros_of_ten : {0u, 8u, 10u}) expect_chains(c, zeros_of_ten);
    }
  }
  force_kernels(before);
}

// The plain loops' own gradients: sum(output * g) is linear in inputs and in weights.
TEST(ConvolutionTest, PlainGradientsAgreeWithCentralDifferences) {
  for (const Case& c : kernel_cases()) {
    SCOPED_TRACE(named(c));
    Images input(c.batch, c.input());
    fill(c.input(), 4, &input);
    plain::Batch x = plain::batch_of(input, c.batch);
    RandomStream random({6, "numbers"});
    plain::Values weights(c.kernel.taps() * c.in * c.out);
    for (double& weight : weights) weight = random.normal();
    plain::Batch g = plain::convolve(x, weights, c.out, c.kernel);
    for (plain::Values& image : g.images) {
      for (double& value : image) value = random.normal();
    }
    const auto slope = [&](double* number) {
      const auto objective = [&](double change) {
        const double kept = *number;
        *number += change;
        const plain::Batch y = plain::convolve(x, weights, c.out, c.kernel);
        *number = kept;
        double sum = 0;
        for (size_t i = 0; i < c.batch; ++i) {
          for (size_t k = 0; k < y.images[i].size(); ++k) sum += y.images[i][k] * g.images[i][k];
        }
        return sum;
      };
      return objective(0.5) - objective(-0.5);
    };
    const plain::ConvolutionGradients gradients = plain::convolve_back(x, weights, g, c.kernel);
    for (int trial = 0; trial < 3; ++trial) {
      const size_t i = random.below(static_cast<uint32_t>(c.batch));
      const size_t k = random.below(static_cast<uint32_t>(x.images[i].size()));
      EXPECT_NEAR(gradients.inputs[i][k], slope(&x.images[i][k]), 1e-6);
      const size_t weight = random.below(static_cast<uint32_t>(weights.size()));
      EXPECT_NEAR(gradients.weights[weight], slope(&weights[weight]), 1e-6);
    }
  }
}

TEST(ConvolutionTest, WithBinaryWeightsAgreesWithPlainLoops) {
  std::vector<Case> cases = kernel_cases();
  cases.insert(cases.end(), std::begin(kCases), std::end(kCases));
  for (const Case& c : cases) {
    SCOPED_TRACE(named(c));
    Images input(c.batch, c.input());
    fill(c.input(), 4, &input);
    BinaryWeightConvolution layer(c.batch, c.input(), c.out, {}, "layer", c.kernel);
    layer.initialise(RandomStream({3, "layer"}));
    layer.set_anchor();
    layer.begin_epoch(0.2);
    expect_plain(c, input, &layer);
    for (const double number : numbers_of(layer)) ASSERT_EQ(std::fabs(number), 1);
  }
}

// Padding channels do not change the others.
TEST(ConvolutionTest, PaddingChannels) {
  const ImageShape narrow = padded_shape(5, 4, 10, 1);
  const ImageShape wide{5, 4, 16, 1};
  Convolution layer(2, narrow, 12, "narrow");
  Convolution full(2, wide, 16, "wide");
  layer.initialise(RandomStream({3, "layer"}));
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
