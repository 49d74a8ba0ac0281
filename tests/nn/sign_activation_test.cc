#include "bitfed/nn/binary/sign_activation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bitfed/bits/kernels.h"
#include "tests/nn/sign_images.h"

namespace bitfed {
namespace {

// What the sign stands for when gradients are taken: its slope is max(sqrt(2) - |x|, 0).
double smooth_sign(double x) {
  if (std::fabs(x) >= std::sqrt(2.0)) return x > 0 ? 1 : -1;
  return std::sqrt(2.0) * x - (x > 0 ? 1 : -1) * x * x / 2;
}

double objective(const std::vector<double>& x, const std::vector<double>& gradient) {
  double mean = 0;
  double squares = 0;
  for (const double value : x) mean += value / static_cast<double>(x.size());
  for (const double value : x) squares += (value - mean) * (value - mean) / static_cast<double>(x.size());
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += gradient[i] * smooth_sign((x[i] - mean) / std::sqrt(squares));
  return sum;
}

// All values of the images that share a mean, as doubles.
std::vector<double> doubles_of(const Images& images, size_t first, size_t count) {
  const float* from = images.row(first, 0);
  return {from, from + count * images.shape().image_floats()};
}

void fill(RandomStream random, double mean, Images* images) {
  for (size_t i = 0; i < images->batch() * images->shape().image_floats(); ++i)
    images->data()[i] = static_cast<float>(random.normal() + mean);
}

// `together`: how many of the images share a mean.
void expect_gradient_of_differences(SignActivation layer, size_t batch, size_t together) {
  const ImageShape shape = layer.output().shape().without_border();
  layer.begin_epoch(0.9);  // as steep late as early
  Images input(batch, shape);
  fill(RandomStream({3, "input"}), 0.3, &input);
  fill(RandomStream({4, "gradient"}), 0, &layer.output_gradient());
  layer.forward(input, batch, Pass::kTraining);
  Images gradient(batch, shape);
  layer.backward(input, batch, &gradient);
  for (size_t first = 0; first < batch; first += together) {
    const std::vector<double> x = doubles_of(input, first, together);
    const std::vector<double> g = doubles_of(layer.output_gradient(), first, together);
    const std::vector<double> found = doubles_of(gradient, first, together);
    for (size_t i = 0; i < x.size(); i += 17) {
      const auto at = [&](double change) {
        std::vector<double> moved = x;
        moved[i] += change;
        return objective(moved, g);
      };
      const double expected = (at(1e-6) - at(-1e-6)) / 2e-6;
      EXPECT_NEAR(found[i], expected, 1e-3 * std::max(1.0, std::fabs(expected)));
    }
  }
}

TEST(SignActivationTest, GradientAgreesWithCentralDifferences) {
  const ImageShape shape{3, 2, 16, 0};
  expect_gradient_of_differences(SignActivation(2, shape, SignForm::kBits), 2, 1);
  expect_gradient_of_differences(SignActivation(3, shape, SignForm::kBits, "static"), 3, 3);
  expect_gradient_of_differences(SignActivation(1, shape, SignForm::kFloats, "static"), 1, 1);
}

TEST(SignActivationTest, SignsAboutTheMeanWithABorderOfZeros) {
  const ImageShape shape{1, 2, 16, 0};
  SignActivation layer(1, shape, SignForm::kFloats);
  Images input(1, shape);
  for (size_t i = 0; i < 32; ++i) input.row(0, 0)[i] = i < 16 ? 5.0f : 7.0f;  // mean 6
  layer.forward(input, 1, Pass::kPrediction);
  const Images& out = layer.output();
  EXPECT_EQ(out.row(0, 0)[3], -1);
  EXPECT_EQ(out.row(0, 0)[16 + 3], 1);
  EXPECT_EQ(out.data()[0], 0);
  EXPECT_EQ(out.row(0, 0)[-1], 0);
  EXPECT_EQ(out.row(0, 0)[32], 0);
  // Equal values: all at the mean, all +1.
  for (size_t i = 0; i < 32; ++i) input.row(0, 0)[i] = 4;
  layer.forward(input, 1, Pass::kPrediction);
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(out.row(0, 0)[i], 1);
}

TEST(SignActivationTest, BitsAreTheFloatsSigns) {
  const ImageShape shape{3, 4, 48, 0};
  SignActivation floats(2, shape, SignForm::kFloats);
  SignActivation bits(2, shape, SignForm::kBits);
  Images input(2, shape);
  fill(RandomStream({3, "input"}), 0.3, &input);
  for (const Pass pass : {Pass::kTraining, Pass::kPrediction}) {
    floats.forward(input, 2, pass);
    bits.forward(input, 2, pass);
    const Images expected = bits_of(floats.output());
    const Images& found = bits.output();
    ASSERT_EQ(found.image_words(), 5u * 6 * 2);
    EXPECT_TRUE(std::equal(found.words(), found.words() + 2 * found.image_words(), expected.words()));
    EXPECT_TRUE(bit_at(expected, 0, 1, 1, 47) == (floats.output().row(0, 0)[47] > 0));
  }
}

TEST(SignActivationTest, TheBorderIsAsWideAsAsked) {
  const ImageShape shape{3, 4, 16, 0};
  Images input(2, shape);
  fill(RandomStream({3, "input"}), 0.3, &input);
  for (const size_t border : {0u, 3u}) {
    SignActivation floats(2, shape, SignForm::kFloats, border);
    SignActivation bits(2, shape, SignForm::kBits, "signs", border);
    EXPECT_EQ(floats.output().shape(), shape.with_border(border));
    floats.forward(input, 1, Pass::kTraining);
    bits.forward(input, 1, Pass::kTraining);
    for (size_t row = 0; row < 3 + 2 * border; ++row) {
      for (size_t column = 0; column < 4 + 2 * border; ++column) {
        const bool inside = row - border < 3 && column - border < 4;
        const float value = floats.output().data()[(row * (4 + 2 * border) + column) * 16 + 5];
        EXPECT_EQ(std::fabs(value), inside ? 1 : 0);
        EXPECT_EQ(bit_at(bits.output(), 0, row, column, 5), value > 0);
      }
    }
  }
}

TEST(SignActivationTest, StaticOnesTrainAboutTheMeanOfTheBatch) {
  const ImageShape shape{1, 1, 16, 0};
  SignActivation layer(3, shape, SignForm::kFloats, "signs");
  Images input(3, shape);
  const float values[] = {1, 2, 6};  // mean 3
  for (size_t i = 0; i < 3 * 16; ++i) input.data()[i] = values[i / 16];
  layer.forward(input, 3, Pass::kTraining);
  EXPECT_EQ(layer.output().row(0, 0)[5], -1);
  EXPECT_EQ(layer.output().row(1, 0)[5], -1);
  EXPECT_EQ(layer.output().row(2, 0)[5], 1);
  // Of the first two of them 1.5.
  layer.forward(input, 2, Pass::kTraining);
  EXPECT_EQ(layer.output().row(0, 0)[5], -1);
  EXPECT_EQ(layer.output().row(1, 0)[5], 1);
}

// From 0 on, a tenth of the way to every batch's mean; a batch of one image, too, has a mean.
TEST(SignActivationTest, StaticOnesPredictAboutTheRunningMean) {
  const ImageShape shape{1, 1, 16, 0};
  SignActivation layer(2, shape, SignForm::kFloats, "signs");
  layer.initialise(RandomStream({1, "signs"}));
  ASSERT_EQ(layer.parameters().size(), 1u);
  const Parameter& running = *layer.parameters()[0];
  EXPECT_EQ(running.name, "signs.mean");
  EXPECT_TRUE(running.statistic);
  EXPECT_EQ(running.to_vector(), std::vector{0.0f});
  Images input(2, shape);
  for (size_t i = 0; i < 2 * 16; ++i) input.data()[i] = i < 16 ? 4.0f : 2.0f;
  layer.forward(input, 2, Pass::kTraining);
  EXPECT_FLOAT_EQ(running.to_vector()[0], 0.3f);
  layer.forward(input, 1, Pass::kTraining);
  EXPECT_FLOAT_EQ(running.to_vector()[0], 0.67f);
  const float mean = running.to_vector()[0];
  const float below = std::nextafter(mean, 0.0f);
  for (size_t i = 0; i < 2 * 16; ++i) input.data()[i] = i % 2 == 0 ? mean : below;
  for (const size_t images : {1u, 2u}) {
    layer.forward(input, images, Pass::kPrediction);
    EXPECT_EQ(layer.output().row(images - 1, 0)[0], 1);
    EXPECT_EQ(layer.output().row(images - 1, 0)[1], -1);
    EXPECT_EQ(layer.output().row(images - 1, 0)[-1], 0);
  }
  EXPECT_EQ(running.to_vector()[0], mean);
  EXPECT_TRUE(SignActivation(2, shape, SignForm::kBits).parameters().empty());
}

TEST(SignActivationTest, AddsToTheGradientOfItsInput) {
  const ImageShape shape{3, 2, 16, 0};
  SignActivation layer(2, shape, SignForm::kBits);
  Images input(2, shape);
  Images alone(2, shape);
  Images added(2, shape);
  Images other(2, shape);
  fill(RandomStream({3, "input"}), 0.3, &input);
  fill(RandomStream({4, "gradient"}), 0, &layer.output_gradient());
  for (size_t i = 0; i < 2 * shape.image_floats(); ++i) other.data()[i] = static_cast<float>(i % 5);
  layer.forward(input, 2, Pass::kTraining);
  layer.backward(input, 2, &alone);
  layer.backward_adding(input, 2, other, &added);
  for (size_t i = 0; i < 2 * shape.image_floats(); ++i)
    EXPECT_EQ(added.data()[i], static_cast<float>(i % 5) + alone.data()[i]) << i;
}

TEST(SignActivationTest, SameBitsOnEveryInstructionSet) {
  const std::string before = kernels().name;
  const ImageShape shape{5, 3, 32, 0};
  std::vector<std::vector<double>> results;
  for (const Kernels* table : supported_kernels()) {
    force_kernels(table->name);
    SignActivation layer(4, shape, SignForm::kBits, "signs");
    Images input(4, shape);
    Images gradient(4, shape);
    fill(RandomStream({5, "input"}), 0.1, &input);
    fill(RandomStream({6, "gradient"}), 0, &layer.output_gradient());
    layer.forward(input, 4, Pass::kTraining);
    layer.backward(input, 4, &gradient);
    results.push_back(doubles_of(gradient, 0, 4));
    results.back().push_back(layer.parameters()[0]->to_vector()[0]);
  }
  for (const auto& result : results) EXPECT_EQ(result, results.front());
  force_kernels(before);
}

}  // namespace
}  // namespace bitfed
