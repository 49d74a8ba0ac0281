#include "bitfed/nn/rotated/rotated_weights.h"

#include <gtest/gtest.h>

#include <cmath>

namespace bitfed {
namespace {

// The antiderivative of the surrogate's slope: what the sign stands for when gradients are taken.
double smooth_sign(double x, const Surrogate& s) {
  const double edge = std::sqrt(2.0) / s.t;
  if (std::fabs(x) >= edge) return x > 0 ? s.k : -s.k;
  return s.k * (std::sqrt(2.0) * s.t * x - (x > 0 ? 1 : -1) * s.t * s.t * x * x / 2);
}

TEST(SurrogateTest, FollowsItsSchedule) {
  EXPECT_FLOAT_EQ(surrogate_of_weights(0).t, 0.01f);
  EXPECT_FLOAT_EQ(surrogate_of_weights(0).k, 100.0f);
  EXPECT_FLOAT_EQ(surrogate_of_weights(1).t, 10.0f);
  EXPECT_FLOAT_EQ(surrogate_of_weights(1).k, 1.0f);
}

struct Values {
  std::vector<std::vector<double>> local;  // a row a filter
  double lambda;
  std::vector<double> theta;
  double gamma;
};

std::vector<double> standardised(std::vector<double> w) {
  double mean = 0;
  double squares = 0;
  for (const double x : w) mean += x / static_cast<double>(w.size());
  for (const double x : w) squares += (x - mean) * (x - mean) / static_cast<double>(w.size());
  for (double& x : w) x = (x - mean) / std::sqrt(squares);
  return w;
}

// The sum of gradient * smooth sign of v, in double precision.
double objective(const Values& values, const std::vector<std::vector<double>>& anchor, const Matrix& r1,
                 const Matrix& r2, const Matrix& gradient, const Surrogate& surrogate) {
  const size_t a = r1.rows;
  const size_t b = r2.rows;
  double sum = 0;
  for (size_t f = 0; f < values.local.size(); ++f) {
    std::vector<double> w(a * b);
    for (size_t i = 0; i < w.size(); ++i)
      w[i] = values.lambda * values.local[f][i] + (1 - values.lambda) * anchor[f][i];
    w = standardised(w);
    const std::vector<double> of_anchor = standardised(anchor[f]);
    const double alpha = std::fabs(std::sin(values.theta[f]));
    const double beta = std::fabs(std::sin(values.gamma));
    for (size_t i = 0; i < a; ++i) {
      for (size_t j = 0; j < b; ++j) {
        double rotated = 0;
        for (size_t k = 0; k < a; ++k) {
          for (size_t l = 0; l < b; ++l)
            rotated += static_cast<double>(r1.row(k)[i]) * w[k * b + l] * r2.row(l)[j];
        }
        const double own = w[i * b + j];
        const double v = own + alpha * (rotated - own) + beta * (of_anchor[i * b + j] - own);
        sum += gradient.row(f)[i * b + j] * smooth_sign(v, surrogate);
      }
    }
  }
  return sum;
}

TEST(RotatedWeightsTest, GradientsAgreeWithCentralDifferences) {
  for (const double progress : {0.3, 0.75}) {
    const size_t filters = 16;
    const size_t inputs = 18;
    RotatedWeights layer(filters, inputs, {}, "x");
    layer.initialise(RandomStream({1, "start"}));
    layer.set_anchor();
    layer.begin_epoch(1, progress);
    std::vector<Parameter*> parameters = layer.parameters();  // weights, theta, r1, r2, lambda, gamma
    Parameter& weights = *parameters[0];
    std::vector<std::vector<double>> anchor(filters);
    RandomStream random({2, "moved"});
    for (size_t f = 0; f < filters; ++f) {
      for (size_t i = 0; i < inputs; ++i) {
        anchor[f].push_back(weights.values.row(f)[i]);
        weights.values.row(f)[i] += static_cast<float>(0.05 * random.normal());
      }
    }
    layer.forward();
    Matrix gradient(filters, inputs);
    for (size_t f = 0; f < filters; ++f) {
      for (size_t i = 0; i < inputs; ++i) gradient.row(f)[i] = static_cast<float>(random.normal());
    }
    layer.backward(gradient);

    Values values;
    for (size_t f = 0; f < filters; ++f) {
      values.local.emplace_back(weights.values.row(f), weights.values.row(f) + inputs);
      values.theta.push_back(parameters[1]->values.row(0)[f]);
    }
    values.lambda = parameters[4]->values.row(0)[0];
    values.gamma = parameters[5]->values.row(0)[0];
    const Surrogate surrogate = surrogate_of_weights(progress);
    const auto slope = [&](double* value) {
      const double kept = *value;
      const double step = 1e-6;
      *value = kept + step;
      const double above =
          objective(values, anchor, parameters[2]->values, parameters[3]->values, gradient, surrogate);
      *value = kept - step;
      const double below =
          objective(values, anchor, parameters[2]->values, parameters[3]->values, gradient, surrogate);
      *value = kept;
      return (above - below) / (2 * step);
    };
    const auto near = [](float found, double expected, const char* what) {
      EXPECT_NEAR(found, expected, 2e-3 * std::max(1.0, std::fabs(expected))) << what;
    };
    for (const size_t f : {0u, 5u, 15u}) {
      for (const size_t i : {0u, 7u, 17u})
        near(weights.gradient.row(f)[i], slope(&values.local[f][i]), "weights");
      near(parameters[1]->gradient.row(0)[f], slope(&values.theta[f]), "theta");
    }
    near(parameters[4]->gradient.row(0)[0], slope(&values.lambda), "lambda");
    near(parameters[5]->gradient.row(0)[0], slope(&values.gamma), "gamma");
  }
}

TEST(RotatedWeightsTest, SignsAreThoseOfTheMixture) {
  RotatedWeights layer(16, 18, {.lambda = false, .beta = false}, "x");
  layer.initialise(RandomStream({1, "start"}));
  layer.set_anchor();
  Parameter& theta = *layer.parameters()[1];
  for (size_t f = 0; f < 16; ++f) theta.values.row(0)[f] = 0;  // alpha 0: the weights' own signs
  const Matrix& signs = layer.forward();
  const Matrix& weights = layer.parameters()[0]->values;
  for (size_t f = 0; f < 16; ++f) {
    float mean = 0;
    for (size_t i = 0; i < 18; ++i) mean += weights.row(f)[i] / 18;
    for (size_t i = 0; i < 18; ++i) EXPECT_EQ(signs.row(f)[i], weights.row(f)[i] >= mean ? 1.0f : -1.0f);
  }
  EXPECT_EQ(layer.parameters().size(), 4u);
}

// Without rotation: signs and gradients of weights, lambda and gamma are those of alpha = 0, and there is
// neither theta nor R. With padding in the filters (18 = 6 x 3) and without (256 = 16 x 16).
TEST(RotatedWeightsTest, WithoutRotation) {
  for (const size_t inputs : {18u, 256u}) {
    RotatedWeights none(9, inputs, {.rotation = RotationUpdate::kNone}, "x");
    RotatedWeights fixed(9, inputs, {.rotation = RotationUpdate::kFixed}, "x");
    Matrix gradient(9, inputs);
    RandomStream random({2, "moved"});
    for (size_t f = 0; f < 9; ++f) {
      for (size_t i = 0; i < inputs; ++i) gradient.row(f)[i] = static_cast<float>(random.normal());
    }
    std::vector<Matrix> signs;
    for (RotatedWeights* layer : {&none, &fixed}) {
      layer->initialise(RandomStream({1, "start"}));
      layer->set_anchor();
      layer->begin_epoch(3, 0.6);
      Parameter& weights = *layer->parameters()[0];
      RandomStream moves({3, "moves"});
      for (size_t f = 0; f < 9; ++f) {
        for (size_t i = 0; i < inputs; ++i)
          weights.values.row(f)[i] += static_cast<float>(0.05 * moves.normal());
      }
      if (layer == &fixed) {
        for (size_t f = 0; f < 9; ++f) layer->parameters()[1]->values.row(0)[f] = 0;
      }
      signs.push_back(layer->forward());
      layer->backward(gradient);
    }
    const std::vector<Parameter*> few = none.parameters();
    const std::vector<Parameter*> all = fixed.parameters();
    ASSERT_EQ(few.size(), 3u);
    EXPECT_EQ(few[1]->name, "x.lambda");
    EXPECT_EQ(few[2]->name, "x.gamma");
    for (size_t f = 0; f < 9; ++f) {
      for (size_t i = 0; i < inputs; ++i) {
        EXPECT_EQ(signs[0].row(f)[i], signs[1].row(f)[i]);
        EXPECT_EQ(few[0]->gradient.row(f)[i], all[0]->gradient.row(f)[i]);
      }
    }
    EXPECT_EQ(few[1]->gradient.row(0)[0], all[4]->gradient.row(0)[0]);
    EXPECT_EQ(few[2]->gradient.row(0)[0], all[5]->gradient.row(0)[0]);
  }
}

// Lambda at 0 or below: the weights have no gradient. Lambda's is not masked by the clamp, so that within a
// round it can come back once the weights differ from the anchor; where they do not, as at the start of a
// round, it is 0 as well, and nothing moves any more.
TEST(RotatedWeightsTest, LambdaBelowZero) {
  RotatedWeights layer(4, 18, {.beta = false, .rotation = RotationUpdate::kNone}, "x");
  layer.initialise(RandomStream({1, "start"}));
  layer.set_anchor();
  layer.begin_epoch(1, 0.5);
  Parameter& weights = *layer.parameters()[0];
  Parameter& lambda = *layer.parameters()[1];
  lambda.values.row(0)[0] = -0.1f;
  Matrix gradient(4, 18);
  RandomStream random({2, "gradient"});
  for (size_t f = 0; f < 4; ++f) {
    for (size_t i = 0; i < 18; ++i) gradient.row(f)[i] = static_cast<float>(random.normal());
  }
  layer.forward();
  layer.backward(gradient);
  EXPECT_EQ(lambda.gradient.row(0)[0], 0);
  weights.values.row(1)[5] += 0.2f;
  layer.forward();
  layer.backward(gradient);
  EXPECT_NE(lambda.gradient.row(0)[0], 0);
  for (size_t f = 0; f < 4; ++f) {
    for (size_t i = 0; i < 18; ++i) EXPECT_EQ(weights.gradient.row(f)[i], 0);
  }
}

TEST(RotatedWeightsTest, InitialScale) {
  RotatedWeights usual(4, 18, {}, "x");
  RotatedWeights small(4, 18, {.initial_scale = 0.25}, "x");
  usual.initialise(RandomStream({1, "start"}));
  small.initialise(RandomStream({1, "start"}));
  for (size_t i = 0; i < 18; ++i) {
    EXPECT_EQ(small.parameters()[0]->values.row(2)[i], 0.25f * usual.parameters()[0]->values.row(2)[i]);
  }
  EXPECT_EQ(small.parameters()[2]->to_vector(), usual.parameters()[2]->to_vector());
}

TEST(RotatedWeightsTest, FusesTheWeightsWithTheAnchor) {
  RotatedWeights layer(16, 9, {}, "x");
  layer.initialise(RandomStream({1, "start"}));
  layer.set_anchor();
  Parameter& weights = *layer.parameters()[0];
  const float anchor = weights.values.row(3)[4];
  weights.values.row(3)[4] = anchor + 1;
  layer.fuse();
  EXPECT_NEAR(weights.values.row(3)[4], anchor + 0.9f, 1e-6);
}

}  // namespace
}  // namespace bitfed
