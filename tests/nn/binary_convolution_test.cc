#include "bitfed/nn/binary/binary_convolution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "bitfed/bits/kernels.h"
#include "tests/nn/plain_layers.h"
#include "tests/nn/sign_images.h"

namespace bitfed {
namespace {

struct Case {
  size_t images, height, width, in, out;
  ConvolutionKernel kernel;
  size_t border = 1;

  ImageShape input() const { return {height, width, in, border}; }
};

const Case kCases[] = {{4, 5, 7, 16, 32, {3, 1}}, {1, 6, 6, 32, 16, {3, 1}}, {3, 3, 3, 64, 80, {3, 1}},
                       {3, 5, 4, 16, 16, {3, 2}}, {2, 6, 5, 32, 48, {1, 2}}, {1, 1, 1, 16, 16, {3, 1}}};
// Several panels of pixels and of channels, the last a narrow one.
const Case kWideCases[] = {{3, 9, 15, 96, 80, {3, 1}}, {2, 5, 4, 80, 144, {3, 2}}};

// Every kernel, and the largest, on images of odd, even and different sides, as small as the kernel allows.
std::vector<Case> kernel_cases() {
  std::vector<Case> cases;
  for (const size_t side : {1u, 3u, 5u, 7u, 15u}) {
    for (const size_t stride : {1u, 2u, 3u}) {
      for (const bool valid : {false, true}) {
        const ConvolutionKernel kernel{side, stride, valid};
        const size_t min_side = valid ? side : 1;
        cases.push_back({1, min_side, min_side + 2, 16, 16, kernel, kernel.padding() + 2});
        if (side > 7 && stride > 1) continue;
        cases.push_back({3, min_side + 4, min_side + 7, 16, 16, kernel, kernel.padding()});
        cases.push_back({1, min_side + 3, min_side, 16, 16, kernel, kernel.padding() + 1});
      }
    }
  }
  cases.push_back({1, 17, 19, 16, 16, {15, 1}, 7});  // all of its 225 cases of borders
  return cases;
}

testing::Message named(const Case& c) {
  return testing::Message() << c.height << " x " << c.width << ", side " << c.kernel.side << ", stride "
                            << c.kernel.stride << (c.kernel.valid ? ", valid, " : ", same, ")
                            << kernels().name;
}

// Either any, or such as fixed point carries without loss: the largest is 32767 of a power of two.
enum class Gradients { kAny, kExact };

struct Tried {
  Images input;
  std::vector<float> signs;  // of the weights, by tap, input, filter
  Images output, input_gradient;
  std::vector<float> gradient;  // of the output
  Matrix weight_gradient;       // a row a filter
};

float random_sign(RandomStream* random) {
  return random->below(2) == 0 ? 1.0f : -1.0f;
}

float random_gradient(Gradients which, bool first, RandomStream* random) {
  if (which == Gradients::kAny) return static_cast<float>(random->normal());
  const double whole = first ? 32767 : static_cast<double>(random->below(65535)) - 32767;
  return static_cast<float>(whole / 8192);
}

Tried run(const Case& c, Gradients gradients) {
  const ImageShape shape = c.input();
  const size_t batch =
      c.images % 2 == 0 ? c.images : c.images + 11;  // a batch may be smaller than the largest
  BinaryConvolution layer(batch, shape, c.out, {.lambda = false, .beta = false}, "x", c.kernel);
  layer.initialise(RandomStream({1, "start"}));
  layer.set_anchor();
  Tried tried{Images(c.images, shape), {}, {}, Images(c.images, shape.without_border()), {}, {}};
  RandomStream random({2, "images"});
  for (size_t image = 0; image < c.images; ++image) {
    for (size_t y = 0; y < c.height; ++y) {
      for (size_t i = 0; i < c.width * c.in; ++i) tried.input.row(image, y)[i] = random_sign(&random);
    }
  }
  const Images bits = bits_of(tried.input);
  layer.forward(bits, c.images, Pass::kTraining);
  tried.output = layer.output();
  tried.signs = layer.deployed()[0];
  Images& gradient = layer.output_gradient();
  for (size_t i = 0; i < c.images * gradient.shape().image_floats(); ++i) {
    gradient.data()[i] = random_gradient(gradients, i == 0, &random);
    tried.gradient.push_back(gradient.data()[i]);
  }
  layer.backward(bits, c.images, &tried.input_gradient);
  tried.weight_gradient = layer.sign_gradient();
  return tried;
}

void expect_plain_loops(std::span<const Case> cases, Gradients gradients) {
  for (const Kernels* table : supported_kernels()) {
    force_kernels(table->name);
    for (const Case& c : cases) {
      const Tried tried = run(c, gradients);
      const ImageShape& out = tried.output.shape();
      SCOPED_TRACE(named(c));
      ASSERT_EQ(out.height, plain::steps(c.height, c.kernel));
      ASSERT_EQ(out.width, plain::steps(c.width, c.kernel));
      std::vector<double> output(c.images * out.pixels() * c.out);
      std::vector<double> input_gradient(c.images * c.height * c.width * c.in);
      std::vector<double> weight_gradient(tried.signs.size());
      for (size_t image = 0; image < c.images; ++image) {
        plain::for_each_tap(c.height, c.width, c.kernel, [&](size_t pixel, size_t at, size_t tap) {
          const float* from = tried.input.row(image, at / c.width) + at % c.width * c.in;
          double* back = input_gradient.data() + (image * c.height * c.width + at) * c.in;
          const size_t to = (image * out.pixels() + pixel) * c.out;
          for (size_t i = 0; i < c.in; ++i) {
            const float* signs = tried.signs.data() + (tap * c.in + i) * c.out;
            double* of_weights = weight_gradient.data() + (tap * c.in + i) * c.out;
            for (size_t o = 0; o < c.out; ++o) {
              const double gradient = tried.gradient[to + o];
              output[to + o] += from[i] * signs[o];
              back[i] += gradient * signs[o];
              of_weights[o] += gradient * from[i];
            }
          }
        });
      }
      for (size_t i = 0; i < output.size(); ++i) ASSERT_EQ(tried.output.data()[i], output[i]);
      // Every gradient is off by half a step of 16 bits at most, and the errors add up like a random walk.
      const double step = gradients == Gradients::kAny ? 5.0 / 32767 : 0;
      const double of_floats = 3e-5 * std::max<double>(1, static_cast<double>(c.kernel.taps()) / 9);
      for (size_t i = 0; i < input_gradient.size(); ++i) {
        ASSERT_NEAR(tried.input_gradient.data()[i], input_gradient[i],
                    step * std::sqrt(static_cast<double>(c.kernel.taps() * c.out)) + of_floats);
      }
      for (size_t i = 0; i < weight_gradient.size(); ++i) {
        ASSERT_NEAR(tried.weight_gradient.row(i % c.out)[i / c.out], weight_gradient[i],
                    step * std::sqrt(static_cast<double>(c.images * out.pixels())) + of_floats);
      }
    }
  }
  force_kernels(supported_kernels().back()->name);
}

TEST(BinaryConvolutionTest, AgreesWithPlainLoops) {
  expect_plain_loops(kCases, Gradients::kExact);
  expect_plain_loops(kWideCases, Gradients::kExact);
  expect_plain_loops(kernel_cases(), Gradients::kExact);
}

TEST(BinaryConvolutionTest, GradientsAreRoundedToSixteenBits) {
  expect_plain_loops(kCases, Gradients::kAny);
}

void expect_same(const Images& a, const Images& b, size_t images, const char* level) {
  EXPECT_TRUE(std::equal(a.data(), a.data() + images * a.shape().image_floats(), b.data())) << level;
}

// Sums are integers before they become floats: their order does not matter. In two cases the output and the
// input's gradient are large enough for non-temporal stores; the next cases have small images, of which
// several share tiles, and fill their tiles' images or do not.
TEST(BinaryConvolutionTest, AllInstructionSetsGiveTheSameBits) {
  for (const Case& c :
       {Case{5, 14, 14, 32, 64, {3, 1}}, Case{64, 9, 9, 16, 16, {3, 1}}, Case{7, 8, 6, 48, 80, {3, 2}},
        Case{64, 16, 16, 16, 64, {3, 1}}, Case{64, 16, 16, 64, 16, {3, 1}}, Case{16, 4, 4, 32, 64, {3, 1}},
        Case{21, 4, 4, 48, 80, {3, 1}}, Case{19, 7, 8, 32, 16, {3, 2}}, Case{17, 8, 8, 16, 32, {1, 2}},
        Case{9, 11, 9, 32, 48, {5, 2}, 2}, Case{6, 9, 9, 16, 32, {3, 1, true}, 1}}) {
    force_kernels("scalar");
    const Tried plain = run(c, Gradients::kAny);
    for (const Kernels* table : supported_kernels()) {
      force_kernels(table->name);
      const Tried tried = run(c, Gradients::kAny);
      const Floats& weights = tried.weight_gradient.values;
      EXPECT_TRUE(std::equal(weights.data(), weights.data() + weights.size(), plain.weight_gradient.row(0)))
          << table->name;
      expect_same(plain.output, tried.output, c.images, table->name);
      expect_same(plain.input_gradient, tried.input_gradient, c.images, table->name);
    }
  }
}

TEST(BinaryConvolutionTest, AddsToTheGradientOfItsInput) {
  // The last are narrower than their stride: not all of the backward pass's phases have pixels.
  for (const Case& c :
       {Case{5, 4, 4, 32, 16, {3, 1}}, Case{20, 5, 4, 16, 32, {1, 2}}, Case{3, 7, 6, 16, 16, {5, 3, true}, 0},
        Case{2, 4, 1, 16, 32, {3, 2}}, Case{2, 1, 5, 16, 32, {5, 3}, 2}, Case{1, 7, 2, 16, 16, {7, 3}, 3}}) {
    const ImageShape shape = c.input();
    const size_t count = c.images * shape.without_border().image_floats();
    for (const Kernels* table : supported_kernels()) {
      force_kernels(table->name);
      BinaryConvolution layer(c.images, shape, c.out, {}, "x", c.kernel);
      layer.initialise(RandomStream({1, "start"}));
      layer.set_anchor();
      const Images input = Images::of_bits(c.images, shape);
      layer.forward(input, c.images, Pass::kTraining);
      const auto fill = [&] {
        RandomStream random({2, "gradient"});
        Images& gradient = layer.output_gradient();
        for (size_t i = 0; i < c.images * gradient.shape().image_floats(); ++i)
          gradient.data()[i] = static_cast<float>(random.normal());
      };
      Images alone(c.images, shape.without_border());
      Images added(c.images, shape.without_border());
      for (size_t i = 0; i < count; ++i) added.data()[i] = static_cast<float>(i % 7);
      fill();
      layer.backward(input, c.images, &alone);
      const float weight = layer.sign_gradient().row(3)[5];
      fill();
      const Images other = added;
      layer.backward_adding(input, c.images, added, &added);
      fill();
      Images apart(c.images, shape.without_border());
      layer.backward_adding(input, c.images, other, &apart);
      for (size_t i = 0; i < count; ++i)
        ASSERT_EQ(apart.data()[i], added.data()[i]) << table->name << " " << i;
      EXPECT_EQ(layer.sign_gradient().row(3)[5], weight) << table->name;
      for (size_t i = 0; i < count; ++i)
        ASSERT_EQ(added.data()[i], alone.data()[i] + static_cast<float>(i % 7)) << table->name << " " << i;
    }
  }
  force_kernels(supported_kernels().back()->name);
}

TEST(BinaryConvolutionTest, NoGradientGivesNoGradient) {
  const ImageShape shape{2, 2, 16, 1};
  BinaryConvolution layer(1, shape, 16, {}, "x");
  layer.initialise(RandomStream({1, "start"}));
  layer.set_anchor();
  const Images input = Images::of_bits(1, shape);
  Images gradient(1, shape.without_border());
  layer.forward(input, 1, Pass::kTraining);
  Images& of_output = layer.output_gradient();
  std::fill_n(of_output.data(), of_output.shape().image_floats(), 0.0f);
  gradient.data()[5] = 3;  // rubbish
  layer.backward(input, 1, &gradient);
  EXPECT_EQ(gradient.data()[5], 0);
  gradient.data()[5] = 3;  // of another path
  layer.backward_adding(input, 1, gradient, &gradient);
  EXPECT_EQ(gradient.data()[5], 3);
  EXPECT_EQ(layer.sign_gradient().row(7)[100], 0);
}

// The cache of max(abs(gradient)) is the gradient's that was written before, if anything: never a stale one.
TEST(BinaryConvolutionTest, AStaleMaximumIsNotUsed) {
  const ImageShape shape{2, 2, 16, 1};
  BinaryConvolution layer(1, shape, 16, {}, "x");
  layer.initialise(RandomStream({1, "start"}));
  layer.set_anchor();
  const Images input = Images::of_bits(1, shape);
  Images expected(1, shape.without_border());
  Images found(1, shape.without_border());
  const auto fill = [&] {
    layer.forward(input, 1, Pass::kTraining);
    RandomStream random({2, "gradient"});
    for (size_t i = 0; i < layer.output().shape().image_floats(); ++i)
      layer.output_gradient().row(0, 0)[i] = static_cast<float>(random.normal());
  };
  fill();
  layer.backward(input, 1, &expected);
  layer.output_gradient().set_max_abs(1e-6f);  // of an earlier gradient
  fill();
  layer.backward(input, 1, &found);
  expect_same(found, expected, 1, kernels().name);
  // One that was set after the last write is used, once.
  fill();
  layer.output_gradient().set_max_abs(100);
  layer.backward(input, 1, &found);
  EXPECT_NE(found.data()[5], expected.data()[5]);
  layer.backward(input, 1, &found);
  expect_same(found, expected, 1, kernels().name);
}

// Integers know no infinity: a gradient that is no longer finite must not come out as one that is.
TEST(BinaryConvolutionTest, WhatIsNotFiniteStaysSo) {
  const ImageShape shape{2, 2, 16, 1};
  for (const float bad : {std::nanf(""), INFINITY}) {
    BinaryConvolution layer(1, shape, 16, {}, "x");
    layer.initialise(RandomStream({1, "start"}));
    layer.set_anchor();
    const Images input = Images::of_bits(1, shape);
    Images gradient(1, shape.without_border());
    layer.forward(input, 1, Pass::kTraining);
    layer.output_gradient().data()[3] = bad;
    layer.backward(input, 1, &gradient);
    EXPECT_FALSE(std::isfinite(gradient.data()[5]));
    EXPECT_FALSE(std::isfinite(layer.parameters()[0]->gradient.row(0)[0]));
  }
}

}  // namespace
}  // namespace bitfed
