#include "bitfed/nn/sign_activation.h"

#include <gtest/gtest.h>

#include <cmath>

namespace bitfed {
namespace {

double smooth_sign(double x, double t) {
  const double edge = std::sqrt(2.0) / t;
  if (std::fabs(x) >= edge) return x > 0 ? 1 : -1;
  return std::sqrt(2.0) * t * x - (x > 0 ? 1 : -1) * t * t * x * x / 2;
}

double objective(const std::vector<double>& x, const std::vector<double>& gradient, double t) {
  double mean = 0;
  double squares = 0;
  for (const double value : x) mean += value / static_cast<double>(x.size());
  for (const double value : x) squares += (value - mean) * (value - mean) / static_cast<double>(x.size());
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i)
    sum += gradient[i] * smooth_sign((x[i] - mean) / std::sqrt(squares), t);
  return sum;
}

TEST(SignActivationTest, GradientAgreesWithCentralDifferences) {
  const ImageShape shape{3, 2, 16, 0};
  for (const double part : {0.1, 0.8}) {
    SignActivation layer(2, shape, 1);
    layer.begin_epoch(part);
    Images input(2, shape);
    RandomStream random({3, "input"});
    std::vector<double> x[2], g[2];
    for (size_t image = 0; image < 2; ++image) {
      for (size_t i = 0; i < shape.image_floats(); ++i) {
        input.row(image, 0)[i] = static_cast<float>(random.normal() + 0.3);
        layer.output_gradient().row(image, 0)[i] = static_cast<float>(random.normal());
        x[image].push_back(input.row(image, 0)[i]);
        g[image].push_back(layer.output_gradient().row(image, 0)[i]);
      }
    }
    layer.forward(input, 2, Pass::kTraining);
    Images gradient(2, shape);
    layer.backward(input, 2, &gradient);
    const double t = std::max(std::pow(10, -2 + 3 * part), 1.0);
    for (size_t image = 0; image < 2; ++image) {
      for (const size_t i : {0u, 17u, 50u, 95u}) {
        const auto at = [&](double change) {
          std::vector<double> moved = x[image];
          moved[i] += change;
          return objective(moved, g[image], t);
        };
        const double expected = (at(1e-6) - at(-1e-6)) / 2e-6;
        EXPECT_NEAR(gradient.row(image, 0)[i], expected, 1e-3 * std::max(1.0, std::fabs(expected)));
      }
    }
  }
}

TEST(SignActivationTest, SignsAboutTheMeanWithABorderOfZeros) {
  const ImageShape shape{1, 2, 16, 0};
  SignActivation layer(1, shape, 1);
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

}  // namespace
}  // namespace bitfed
