#include "bitfed/nn/kernels/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "bitfed/base/hash/random.h"
#include "bitfed/bits/kernels.h"
#include "bitfed/nn/kernels/binary_kernels.h"
#include "bitfed/nn/kernels/matrix.h"
#include "bitfed/nn/kernels/tile_kernels.h"

namespace bitfed {
namespace {

Matrix random_matrix(size_t rows, size_t columns, const char* purpose) {
  RandomStream random({7, purpose, rows, columns});
  Matrix matrix(rows, columns);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) matrix.row(r)[c] = static_cast<float>(random.normal());
  }
  return matrix;
}

bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct Size {
  size_t rows, columns, depth;
};
const std::vector<Size> kSizes = {{1, 1, 1},   {2, 6, 3},    {3, 16, 14},  {32, 64, 14},
                                  {13, 33, 7}, {32, 32, 64}, {5, 100, 31}, {7, 16, 0},
                                  {31, 16, 9}, {29, 7, 5},   {65, 65, 33}};

// A run of some kernel, its results as one matrix.
using Work = std::function<Floats(const NeuralKernels&)>;

void expect_same_bits_everywhere(const Work& work) {
  const std::vector<const NeuralKernels*> tables = supported_neural_kernels();
  const Floats expected = work(*tables.front());
  for (const NeuralKernels* table : tables) EXPECT_TRUE(same_bits(work(*table), expected)) << table->name;
}

TEST(NeuralKernelsTest, SumsAreClippedAndGradientsPassWithin) {
  const ClipBounds hardtanh{-1, 1};
  const ClipBounds relu{0, std::numeric_limits<float>::infinity()};
  Matrix a = random_matrix(3, 32, "a");
  Matrix b = random_matrix(3, 32, "b");
  a.row(0)[3] = std::numeric_limits<float>::quiet_NaN();
  b.row(1)[4] = 1 - a.row(1)[4];  // on a bound, but for rounding
  a.row(2)[5] = 1;
  b.row(2)[5] = 0;
  const Matrix gradient = random_matrix(3, 32, "gradient");
  const size_t count = a.values.size();
  for (const ClipBounds& bounds : {hardtanh, relu}) {
    for (const NeuralKernels* table : supported_neural_kernels()) {
      Floats out(count);
      table->add_clipped(a.row(0), b.row(0), count, bounds, out.data());
      Floats clipped(count);
      table->clip_backward(out.data(), gradient.row(0), count, bounds, clipped.data());
      for (size_t i = 0; i < count; ++i) {
        const float sum = a.values[i] + b.values[i];
        if (std::isnan(sum)) {
          EXPECT_TRUE(std::isnan(out[i])) << table->name;
          continue;
        }
        EXPECT_EQ(out[i], std::clamp(sum, bounds.min, bounds.max)) << table->name;
        const bool passes = bounds.min < sum && sum < bounds.max;
        EXPECT_EQ(clipped[i], passes ? gradient.values[i] : 0) << table->name;
      }
    }
  }
}

TEST(NeuralKernelsTest, ProductIsThatOfPlainLoops) {
  for (const Size& size : kSizes) {
    const Matrix a = random_matrix(size.rows, size.depth, "a");
    const Matrix b = random_matrix(size.depth, size.columns, "b");
    for (const NeuralKernels* table : supported_neural_kernels()) {
      Matrix c = random_matrix(size.rows, size.columns, "rubbish");
      table->multiply({a.values.data(), a.stride, 1, b.values.data(), b.stride, c.values.data(), c.stride,
                       size.rows, c.stride, size.depth});
      for (size_t r = 0; r < size.rows; ++r) {
        for (size_t n = 0; n < size.columns; ++n) {
          float expected = 0;
          for (size_t k = 0; k < size.depth; ++k) expected = std::fma(a.row(r)[k], b.row(k)[n], expected);
          ASSERT_EQ(c.row(r)[n], expected) << table->name << " " << r << " " << n;
        }
      }
    }
  }
}

TEST(NeuralKernelsTest, ProductCanBeADescent) {
  for (const Size& size : kSizes) {
    const Matrix a = random_matrix(size.rows, size.depth, "a");
    const Matrix b = random_matrix(size.depth, size.columns, "b");
    for (const NeuralKernels* table : supported_neural_kernels()) {
      Matrix gradient(size.rows, size.columns);
      Matrix expected = random_matrix(size.rows, size.columns, "c");
      Matrix c = expected;
      Product product{a.values.data(),        a.stride,        1,         b.values.data(), b.stride,
                      gradient.values.data(), gradient.stride, size.rows, c.stride,        size.depth};
      table->multiply(product);
      table->descend(expected.values.data(), gradient.values.data(), expected.values.size(), 0.3f);
      product.c = c.values.data();
      product.descent = 0.3f;
      table->multiply(product);
      for (size_t i = 0; i < c.values.size(); ++i)
        ASSERT_EQ(c.values.data()[i], expected.values.data()[i]) << table->name << " " << i;
    }
  }
}

TEST(NeuralKernelsTest, SwappedStepsMultiplyTheTransposed) {
  const Matrix a = random_matrix(9, 21, "a");  // of which the transposed is multiplied
  const Matrix b = random_matrix(9, 40, "b");
  for (const NeuralKernels* table : supported_neural_kernels()) {
    Matrix c(21, 40);
    table->multiply({a.values.data(), 1, a.stride, b.values.data(), b.stride, c.values.data(), c.stride, 21,
                     c.stride, 9});
    double expected = 0;
    for (size_t k = 0; k < 9; ++k) expected += static_cast<double>(a.row(k)[20]) * b.row(k)[39];
    EXPECT_NEAR(c.row(20)[39], expected, 1e-5) << table->name;
  }
}

struct Norm {
  Matrix out;
  Floats mean, variance, inverse;

  float normal(const Matrix& x, size_t row, size_t column) const {
    return (x.row(row)[column] - mean[column]) * inverse[column];
  }
};

Norm forward(const NeuralKernels& table, const Matrix& x, const Floats& scale, const Floats& shift,
             Activation activation) {
  Norm norm{Matrix(x.rows, x.columns), Floats(x.columns), Floats(x.columns), Floats(x.columns)};
  table.norm_forward({x.values.data(), x.rows, x.stride, scale.data(), shift.data(), 1e-3f, activation,
                      norm.out.values.data(), norm.mean.data(), norm.variance.data(), norm.inverse.data()});
  return norm;
}

Floats ones(size_t columns) {
  Floats result(columns);
  for (size_t i = 0; i < result.size(); ++i) result[i] = 1;
  return result;
}

Floats shifts(size_t columns) {
  const Matrix random = random_matrix(1, columns, "shift");
  return random.values;
}

TEST(NeuralKernelsTest, BatchNormByHand) {
  Matrix x(4, 1);
  for (size_t r = 0; r < 4; ++r) x.row(r)[0] = static_cast<float>(r);  // mean 1.5, variance 1.25
  Floats shift(1);
  shift[0] = 0.25f;
  for (const NeuralKernels* table : supported_neural_kernels()) {
    const Norm norm = forward(*table, x, ones(1), shift, Activation::kSign);
    EXPECT_FLOAT_EQ(norm.mean[0], 1.5f);
    EXPECT_FLOAT_EQ(norm.variance[0], 1.25f);
    EXPECT_FLOAT_EQ(norm.normal(x, 0, 0), static_cast<float>(-1.5 / std::sqrt(1.251)));
    EXPECT_EQ(norm.out.row(1)[0], -1);  // -0.447 + 0.25
    EXPECT_EQ(norm.out.row(2)[0], 1);
    EXPECT_FLOAT_EQ(forward(*table, x, ones(1), shift, Activation::kRelu).out.row(1)[0], 0);
    const Norm clipped = forward(*table, x, ones(1), shift, Activation::kHardtanh);
    EXPECT_FLOAT_EQ(clipped.out.row(0)[0], -1);  // -1.34 + 0.25
    EXPECT_FLOAT_EQ(clipped.out.row(1)[0], clipped.normal(x, 1, 0) + 0.25f);
    EXPECT_FLOAT_EQ(clipped.out.row(3)[0], 1);
  }
}

TEST(NeuralKernelsTest, ABatchOfOneIsItsOwnMean) {
  const Matrix x = random_matrix(1, 20, "x");
  for (const NeuralKernels* table : supported_neural_kernels()) {
    const Norm norm = forward(*table, x, ones(20), shifts(20), Activation::kNone);
    for (size_t c = 0; c < 20; ++c) {
      EXPECT_EQ(norm.normal(x, 0, c), 0);
      EXPECT_EQ(norm.variance[c], 0);
    }
  }
}

// The loss that the gradients below are of: a fixed weight for every output.
double weighted_sum(const Matrix& out, const Matrix& weights) {
  double sum = 0;
  for (size_t r = 0; r < out.rows; ++r) {
    for (size_t c = 0; c < out.columns; ++c) sum += static_cast<double>(out.row(r)[c]) * weights.row(r)[c];
  }
  return sum;
}

// The layer in double precision, for central differences.
double norm_in_double(const std::vector<double>& x, const Floats& scale, const Floats& shift,
                      const Matrix& weights, bool relu) {
  double sum = 0;
  for (size_t c = 0; c < weights.columns; ++c) {
    double mean = 0;
    double variance = 0;
    for (size_t r = 0; r < weights.rows; ++r)
      mean += x[r * weights.columns + c] / static_cast<double>(weights.rows);
    for (size_t r = 0; r < weights.rows; ++r)
      variance += std::pow(x[r * weights.columns + c] - mean, 2) / static_cast<double>(weights.rows);
    for (size_t r = 0; r < weights.rows; ++r) {
      const double normal = (x[r * weights.columns + c] - mean) / std::sqrt(variance + 1e-3);
      const double out = normal * scale[c] + shift[c];
      sum += (relu ? std::max(out, 0.0) : out) * weights.row(r)[c];
    }
  }
  return sum;
}

TEST(NeuralKernelsTest, GradientOfBatchNormAgreesWithCentralDifferences) {
  for (const auto& [rows, columns] : {std::pair<size_t, size_t>{32, 5}, {7, 17}, {2, 1}}) {
    for (const Activation activation : {Activation::kNone, Activation::kRelu}) {
      const Matrix x = random_matrix(rows, columns, "x");
      const Matrix weights = random_matrix(rows, columns, "weights");
      const Floats scale = random_matrix(1, columns, "scale").values;
      const Floats shift = shifts(columns);
      std::vector<double> values;
      for (size_t r = 0; r < rows; ++r) values.insert(values.end(), x.row(r), x.row(r) + columns);
      for (const NeuralKernels* table : supported_neural_kernels()) {
        const Norm norm = forward(*table, x, scale, shift, activation);
        EXPECT_NEAR(weighted_sum(norm.out, weights),
                    norm_in_double(values, scale, shift, weights, activation == Activation::kRelu), 1e-3);
        Matrix gradient = weights;
        Floats scale_gradient(columns);
        Floats shift_gradient(columns);
        const float largest = table->norm_backward(
            {gradient.values.data(), rows, gradient.stride, x.values.data(), norm.mean.data(),
             norm.inverse.data(), scale.data(), shift.data(), activation, scale_gradient.data(),
             shift_gradient.data(), gradient.values.data()});
        EXPECT_EQ(largest, table->largest_magnitude(gradient.values.data(), gradient.values.size()));
        for (size_t i = 0; i < values.size(); ++i) {
          const double step = 1e-5;
          const auto at = [&](double change) {
            std::vector<double> moved = values;
            moved[i] += change;
            return norm_in_double(moved, scale, shift, weights, activation == Activation::kRelu);
          };
          const double expected = (at(step) - at(-step)) / (2 * step);
          EXPECT_NEAR(gradient.row(i / columns)[i % columns], expected,
                      1e-3 * std::max(1.0, std::fabs(expected)))
              << table->name << " " << i;
        }
        for (size_t c = 0; c < columns; ++c) {
          double expected = 0;  // of the outputs that are not cut off, the weights
          double of_scale = 0;
          for (size_t r = 0; r < rows; ++r) {
            const bool cut = activation == Activation::kRelu && norm.out.row(r)[c] <= 0;
            expected += cut ? 0 : weights.row(r)[c];
            of_scale += cut ? 0 : weights.row(r)[c] * norm.normal(x, r, c);
          }
          EXPECT_NEAR(shift_gradient[c], expected, 1e-4);
          EXPECT_NEAR(scale_gradient[c], of_scale, 1e-4);
        }
      }
    }
  }
}

// A sign has no slope: the gradient passes straight through where the input is within ±1, ends included.
TEST(NeuralKernelsTest, GradientOfTheSignPassesWithinOne) {
  Matrix x(5, 1);
  const float inputs[] = {-1.5f, -1.0f, 0.0f, 1.0f, 1.0001f};
  Matrix gradient(5, 1);
  for (size_t r = 0; r < 5; ++r) {
    x.row(r)[0] = inputs[r];
    gradient.row(r)[0] = 1;
  }
  const Floats none(1);
  for (const NeuralKernels* table : supported_neural_kernels()) {
    Matrix copy = gradient;
    Floats unused(1);
    Floats shift_gradient(1);
    table->norm_backward({copy.values.data(), 5, copy.stride, x.values.data(), none.data(), ones(1).data(),
                          ones(1).data(), none.data(), Activation::kSign, unused.data(),
                          shift_gradient.data(), copy.values.data()});
    EXPECT_EQ(shift_gradient[0], 3) << table->name;
  }
}

TEST(NeuralKernelsTest, SoftmaxLossAndItsGradient) {
  for (const size_t classes : {1u, 2u, 6u, 16u, 37u}) {
    const size_t rows = 5;
    Matrix logits = random_matrix(rows, classes, "logits");
    for (size_t c = classes; c < logits.stride; ++c) logits.row(0)[c] = 50;  // padding must not count
    std::vector<uint16_t> labels;
    for (size_t r = 0; r < rows; ++r) labels.push_back(static_cast<uint16_t>(r * 7 % classes));
    for (const NeuralKernels* table : supported_neural_kernels()) {
      Matrix gradient = logits;
      std::vector<float> sums(rows);
      std::vector<float> margins(rows);
      table->softmax_loss(gradient.values.data(), rows, gradient.stride, classes, labels.data(), sums.data(),
                          margins.data());
      for (size_t r = 0; r < rows; ++r) {
        double whole = 0;
        for (size_t c = 0; c < classes; ++c) whole += std::exp(static_cast<double>(logits.row(r)[c]));
        EXPECT_NEAR(std::log(sums[r]) + margins[r], std::log(whole) - logits.row(r)[labels[r]], 1e-5);
        for (size_t c = 0; c < classes; ++c) {
          const double probability = std::exp(static_cast<double>(logits.row(r)[c])) / whole;
          const double expected = (probability - (c == labels[r] ? 1 : 0)) / static_cast<double>(rows);
          EXPECT_NEAR(gradient.row(r)[c], expected, 1e-6) << table->name;
        }
        for (size_t c = classes; c < logits.stride; ++c) EXPECT_EQ(gradient.row(r)[c], 0);
      }
    }
  }
}

TEST(NeuralKernelsTest, SoftmaxOfFarLogitsStaysFinite) {
  Matrix logits(1, 3);
  logits.row(0)[0] = 1e30f;
  logits.row(0)[1] = -1e30f;
  const uint16_t label = 1;
  for (const NeuralKernels* table : supported_neural_kernels()) {
    Matrix gradient = logits;
    float sum = 0;
    float margin = 0;
    table->softmax_loss(gradient.values.data(), 1, gradient.stride, 3, &label, &sum, &margin);
    EXPECT_EQ(margin, 2e30f);
    EXPECT_NEAR(gradient.row(0)[0], 1, 1e-6);
    EXPECT_NEAR(gradient.row(0)[1], -1, 1e-6);
  }
}

TEST(NeuralKernelsTest, AdamByHand) {
  Floats parameters(3);
  parameters[0] = 0.5f;
  parameters[1] = -1.2f;  // beyond the bound: no gradient, clipped
  parameters[2] = 0.9995f;
  Floats gradient(3);
  gradient[0] = 0.1f;
  gradient[1] = 0.1f;
  gradient[2] = -0.2f;
  for (const NeuralKernels* table : supported_neural_kernels()) {
    Floats moved = parameters;
    Floats first(3);
    Floats second(3);
    // The first step: m = 0.1 g, v = 0.001 g², so that m / sqrt(v) = 0.1 / sqrt(0.001) whatever g.
    const float rate = 1e-3f * std::sqrt(0.001f) / 0.1f;
    table->adam({moved.data(), gradient.data(), first.data(), second.data(), moved.size(), rate, 0.9f, 0.999f,
                 0.1f, 0.001f, 1e-7f, 1.0f});
    EXPECT_NEAR(moved[0], 0.499, 1e-6) << table->name;
    EXPECT_EQ(moved[1], -1) << table->name;
    EXPECT_EQ(moved[2], 1) << table->name;
    EXPECT_NEAR(first[0], 0.01, 1e-8);
    EXPECT_NEAR(second[2], 4e-5, 1e-10);
    EXPECT_EQ(first[1], 0);
  }
}

// Exact in binary: 1.5 + 0.25 * 2 = 2, 0.5 * 4 + 2 = 4, 2 - 0.125 * 4 = 1.5; without decay 1.5, 3.5, 1.5625.
TEST(NeuralKernelsTest, MomentumAndDecayByHand) {
  for (const NeuralKernels* table : supported_neural_kernels()) {
    for (const bool decays : {true, false}) {
      Floats parameters(16), gradient(16), velocity(16);
      parameters[3] = 2;
      gradient[3] = 1.5f;
      velocity[3] = 4;
      table->descend_with_momentum(
          {parameters.data(), gradient.data(), velocity.data(), 16, 0.125f, 0.5f, 0.25f, decays});
      EXPECT_EQ(velocity[3], decays ? 4 : 3.5f) << table->name;
      EXPECT_EQ(parameters[3], decays ? 1.5f : 1.5625f) << table->name;
      EXPECT_EQ(parameters[4], 0) << table->name;
    }
  }
}

// As the plain loop has it, whose multiply-adds are fused.
TEST(NeuralKernelsTest, MomentumOfPlainLoops) {
  const Matrix gradient = random_matrix(3, 37, "gradient");
  for (const bool decays : {true, false}) {
    Matrix expected = random_matrix(3, 37, "parameters");
    Matrix velocity = random_matrix(3, 37, "velocity");
    for (size_t i = 0; i < expected.values.size(); ++i) {
      const float p = expected.values[i];
      const float u = decays ? std::fma(5e-4f, p, gradient.values[i]) : gradient.values[i];
      velocity.values[i] = std::fma(0.9f, velocity.values[i], u);
      expected.values[i] = std::fma(-0.1f, velocity.values[i], p);
    }
    for (const NeuralKernels* table : supported_neural_kernels()) {
      Matrix p = random_matrix(3, 37, "parameters");
      Matrix v = random_matrix(3, 37, "velocity");
      table->descend_with_momentum({p.values.data(), gradient.values.data(), v.values.data(), p.values.size(),
                                    0.1f, 0.9f, 5e-4f, decays});
      EXPECT_TRUE(same_bits(p.values, expected.values)) << table->name;
      EXPECT_TRUE(same_bits(v.values, velocity.values)) << table->name;
    }
  }
}

TEST(NeuralKernelsTest, TransposedByPlainLoops) {
  for (const Size& size : kSizes) {
    const Matrix from = random_matrix(size.rows, size.columns, "from");
    for (const NeuralKernels* table : supported_neural_kernels()) {
      Matrix to(from.stride, size.rows);
      table->transpose(from.values.data(), size.rows, from.stride, to.values.data(), to.stride);
      for (size_t r = 0; r < size.rows; ++r) {
        for (size_t c = 0; c < from.stride; ++c) ASSERT_EQ(to.row(c)[r], from.row(r)[c]) << table->name;
      }
      for (size_t c = 0; c < from.stride; ++c) {
        for (size_t r = size.rows; r < to.stride; ++r) ASSERT_EQ(to.row(c)[r], 0) << table->name;
      }
    }
  }
}

TEST(NeuralKernelsTest, SignOfZeroIsPositive) {
  Floats x(3);
  x[0] = 0.0f;
  x[1] = -0.0f;
  x[2] = -1e-30f;
  for (const NeuralKernels* table : supported_neural_kernels()) {
    Floats out(3);
    table->signs(x.data(), x.size(), 0, out.data());
    EXPECT_EQ(out[0], 1);
    EXPECT_EQ(out[1], 1);
    EXPECT_EQ(out[2], -1);
  }
}

TEST(NeuralKernelsTest, MomentsOfColumnsFarFromZero) {
  Matrix x = random_matrix(1000, 90, "x");
  for (size_t r = 0; r < x.rows; ++r) {
    for (size_t c = 0; c < x.columns; ++c) x.row(r)[c] += 100;
  }
  for (const NeuralKernels* table : supported_neural_kernels()) {
    Floats mean(90);
    Floats variance(90);
    table->moments(x.values.data(), x.rows, x.stride, mean.data(), variance.data());
    for (size_t c = 0; c < x.columns; ++c) {
      double sum = 0;
      double squares = 0;
      for (size_t r = 0; r < x.rows; ++r) sum += x.row(r)[c];
      for (size_t r = 0; r < x.rows; ++r) squares += std::pow(x.row(r)[c] - sum / 1000, 2);
      EXPECT_NEAR(mean[c], sum / 1000, 1e-4);
      EXPECT_NEAR(variance[c], squares / 1000, 1e-4);
    }
  }
}

// The order of kSummedTogether, in plain loops: 64 chains of 2,048 values, by halves, then in sequence.
TEST(NeuralKernelsTest, TheOrderOfSumsOverAnImage) {
  for (const size_t count : {16u, 48u, 64u, 80u, 2048u, 2064u, 4608u, 65536u}) {
    const Matrix x = random_matrix(1, count, "x");
    float sum = 0;
    for (size_t first = 0; first < count; first += 2048) {
      float chains[64] = {};
      for (size_t i = first; i < std::min(first + 2048, count); ++i) {
        const float away = x.row(0)[i] - 0.25f;
        chains[i % 64] = std::fma(away, away, chains[i % 64]);
      }
      for (size_t half = 32; half > 0; half /= 2) {
        for (size_t i = 0; i < half; ++i) chains[i] += chains[i + half];
      }
      sum += chains[0];
    }
    const float expected = std::sqrt(sum / static_cast<float>(count));
    for (const NeuralKernels* table : supported_neural_kernels())
      EXPECT_EQ(table->standard_deviation(x.row(0), count, nullptr, count, 0.25f), expected)
          << table->name << ", " << count;
  }
}

// The order of kNormRun: 64 rows, 16 of these, then the rest.
TEST(NeuralKernelsTest, TheOrderOfBatchNormsSums) {
  for (const size_t rows : {1u, 63u, 65u, 1024u, 1025u, 5000u}) {
    const Matrix x = random_matrix(rows, 16, "x");
    float sum = 0;
    for (size_t first = 0; first < rows; first += 1024) {
      float together = 0;
      for (size_t run = first; run < std::min(first + 1024, rows); run += 64) {
        float own = 0;
        for (size_t r = run; r < std::min(run + 64, rows); ++r) own += x.row(r)[3] - x.row(0)[3];
        together += own;
      }
      sum += together;
    }
    const float expected = x.row(0)[3] + sum / static_cast<float>(rows);
    for (const NeuralKernels* table : supported_neural_kernels()) {
      Floats mean(16);
      Floats variance(16);
      table->moments(x.values.data(), rows, 16, mean.data(), variance.data());
      EXPECT_EQ(mean[3], expected) << table->name << ", " << rows;
    }
  }
}

TEST(NeuralKernelsTest, QuantisedToTheNearestEven) {
  Floats x(16);
  const float values[] = {0.5f, 1.5f, -0.5f, -1.5f, 2.25f, -2.75f, 16383.5f, -16383.6f};
  const int16_t expected[] = {0, 2, 0, -2, 2, -3, 16384, -16384};
  for (size_t i = 0; i < 8; ++i) x[i] = values[i] / 4;
  for (const NeuralKernels* table : supported_neural_kernels()) {
    Shorts one(16);
    Shorts paired(32);
    table->quantise(x.data(), 16, 4, one.data());
    table->quantise_pairs(x.data(), x.data(), 16, 4, paired.data());
    for (size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(one[i], expected[i]) << table->name;
      EXPECT_EQ(paired[2 * i], expected[i]) << table->name;
      EXPECT_EQ(paired[2 * i + 1], expected[i]) << table->name;
    }
    EXPECT_EQ(table->largest_magnitude(x.data(), 16), 16383.6f / 4) << table->name;
    for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
      Floats spoilt(64);
      spoilt[5] = bad;  // and finite values after it
      EXPECT_TRUE(std::isnan(table->largest_magnitude(spoilt.data(), 64))) << table->name;
    }
  }
}

TEST(NeuralKernelsTest, AllUnitsGiveTheSameBits) {
  const Matrix a = random_matrix(32, 37, "a");
  const Matrix b = random_matrix(37, 70, "b");
  const Matrix x = random_matrix(29, 70, "x");
  const Floats shift = shifts(70);
  expect_same_bits_everywhere([&](const NeuralKernels& table) {
    Matrix c(32, 70);
    table.multiply({a.values.data(), a.stride, 1, b.values.data(), b.stride, c.values.data(), c.stride, 32,
                    c.stride, 37});
    return c.values;
  });
  for (const Activation activation :
       {Activation::kNone, Activation::kSign, Activation::kRelu, Activation::kHardtanh}) {
    expect_same_bits_everywhere(
        [&](const NeuralKernels& table) { return forward(table, x, shift, shift, activation).out.values; });
    expect_same_bits_everywhere([&](const NeuralKernels& table) {
      const Norm norm = forward(table, x, shift, shift, activation);
      Matrix gradient = random_matrix(29, 70, "gradient");
      Floats scale_gradient(70);
      Floats shift_gradient(70);
      table.norm_backward({gradient.values.data(), 29, gradient.stride, x.values.data(), norm.mean.data(),
                           norm.inverse.data(), shift.data(), shift.data(), activation, scale_gradient.data(),
                           shift_gradient.data(), gradient.values.data()});
      return gradient.values;
    });
    expect_same_bits_everywhere([&](const NeuralKernels& table) {
      Matrix out(29, 70);
      table.affine(x.values.data(), 29, x.stride, shift.data(), shift.data(), activation, out.values.data());
      return out.values;
    });
  }
  expect_same_bits_everywhere([&](const NeuralKernels& table) {
    Matrix logits = x;
    const std::vector<uint16_t> labels(29, 3);
    std::vector<float> sums(29);
    std::vector<float> margins(29);
    table.softmax_loss(logits.values.data(), 29, logits.stride, 70, labels.data(), sums.data(),
                       margins.data());
    return logits.values;
  });
  expect_same_bits_everywhere([&](const NeuralKernels& table) {
    Floats parameters = x.values;
    Floats first = random_matrix(29, 70, "first").values;
    Floats second(parameters.size());
    table.adam({parameters.data(), x.values.data(), first.data(), second.data(), parameters.size(), 0.01f,
                0.9f, 0.999f, 0.1f, 0.001f, 1e-7f, 0.0f});
    return parameters;
  });
}

// Large outputs are written past the caches.
TEST(NeuralKernelsTest, WhatIsStreamedIsTheSame) {
  constexpr size_t kColumns = 80;
  constexpr size_t kRows = kStreamedBytes / sizeof(float) / kColumns + 1;
  const Matrix x = random_matrix(kRows, kColumns, "x");
  const Matrix y = random_matrix(kRows, kColumns, "y");
  const size_t count = x.values.size();
  for (const NeuralKernels* table : supported_neural_kernels()) {
    const NeuralKernels& plain = *supported_neural_kernels()[0];
    const auto expect_same = [&](const Matrix& a, const Matrix& b) {
      EXPECT_TRUE(std::equal(a.row(0), a.row(0) + count, b.row(0))) << table->name;
    };
    Matrix streamed(kRows, kColumns);
    Matrix stored(kRows, kColumns);
    SignBackward back{x.row(0), count, 0.5f, 1.25f, {1, 1}, y.row(0), streamed.row(0), true};
    table->sign_backward(back);
    back.x_gradient = stored.row(0);
    back.streams = false;
    table->sign_backward(back);
    expect_same(streamed, stored);
    table->add_clipped(x.row(0), y.row(0), count, {-1, 1}, streamed.row(0));
    for (const size_t at : {size_t{0}, count / 2})
      table->add_clipped(x.row(0) + at, y.row(0) + at, count / 2, {-1, 1}, stored.row(0) + at);
    expect_same(streamed, stored);
    const Norm norm = forward(*table, x, ones(kColumns), shifts(kColumns), Activation::kHardtanh);
    expect_same(norm.out, forward(plain, x, ones(kColumns), shifts(kColumns), Activation::kHardtanh).out);
    for (size_t c = 0; c < kColumns; ++c) {
      double sum = 0;
      double squares = 0;
      for (size_t r = 0; r < kRows; ++r) sum += x.row(r)[c];
      for (size_t r = 0; r < kRows; ++r) squares += std::pow(x.row(r)[c] - sum / kRows, 2);
      EXPECT_NEAR(norm.mean[c], sum / kRows, 1e-5) << table->name;
      EXPECT_NEAR(norm.variance[c], squares / kRows, 1e-4) << table->name;
      const double normal = (x.row(7)[c] - sum / kRows) / std::sqrt(squares / kRows + 1e-3);
      const double expected = std::clamp(normal + shifts(kColumns)[c], -1.0, 1.0);
      EXPECT_NEAR(norm.out.row(7)[c], expected, 1e-4) << table->name;
    }
  }
}

// The neural tables are those of the instruction set that is in use for bits.
TEST(NeuralKernelsTest, TablesFollowTheOneInUse) {
  const std::string before = kernels().name;
  for (const Kernels* table : supported_kernels()) {
    force_kernels(table->name);
    const bool is_vnni = table->instruction_set == InstructionSet::kVnni;
    const bool is_amx = table->instruction_set == InstructionSet::kAmx;
    EXPECT_EQ(neural_kernels().name, std::string(is_vnni || is_amx ? "avx512" : table->name));
    EXPECT_EQ(binary_kernels().name, std::string(is_vnni ? "avx2" : is_amx ? "avx512" : table->name));
    EXPECT_EQ(tile_kernels() != nullptr, table->instruction_set == InstructionSet::kAmx);
  }
  force_kernels(before);
}

}  // namespace
}  // namespace bitfed
