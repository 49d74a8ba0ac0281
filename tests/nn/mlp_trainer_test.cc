#include "bitfed/nn/mlp/mlp_trainer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "bitfed/bits/kernels.h"

namespace bitfed {
namespace {

// Values that every language computes alike.
double made_up(int64_t i) {
  return static_cast<double>((i * 7919 + 13) % 2001 - 1000) / 1000.0;
}

const MlpShape kBinary{{14, 64, 32, 16, 6}, true};
const MlpShape kFull{{14, 64, 32, 16, 6}, false};

MlpParameters made_up_parameters(const MlpShape& shape) {
  MlpParameters parameters;
  for (size_t layer = 0; layer < shape.layers(); ++layer) {
    const size_t in = shape.widths[layer];
    const size_t out = shape.widths[layer + 1];
    const double scale = shape.binary ? 1.0 : std::sqrt(6.0 / static_cast<double>(in + out));
    for (size_t i = 0; i < in; ++i) {
      for (size_t o = 0; o < out; ++o) {
        const auto at = static_cast<int64_t>(100003 * layer + o * in + i);
        parameters.weights.push_back(static_cast<float>(scale * made_up(at)));
      }
    }
    for (size_t o = 0; o < out; ++o)
      parameters.shifts.push_back(
          static_cast<float>(0.25 * made_up(static_cast<int64_t>(500009 + 1000 * layer + o))));
  }
  parameters.means.assign(shape.units(), 0);
  parameters.variances.assign(shape.units(), 1);
  return parameters;
}

std::vector<uint16_t> made_up_batch(size_t rows, size_t step, MlpTrainer* trainer) {
  std::vector<uint16_t> labels;
  for (size_t r = 0; r < rows; ++r) {
    for (size_t f = 0; f < 14; ++f)
      trainer->input(r)[f] =
          static_cast<float>(made_up(static_cast<int64_t>(700001 + 50000 * step + 14 * r + f)));
    labels.push_back(static_cast<uint16_t>((r * 5 + r / 3 + step) % 6));
  }
  return labels;
}

// One value that depends on all values of a layer: the sum of value * (31 j mod 17 - 8).
template <typename Value>
double digest(size_t count, Value value) {
  double sum = 0;
  for (size_t j = 0; j < count; ++j) sum += value(j) * (static_cast<double>(j * 31 % 17) - 8);
  return sum;
}

struct Expected {
  MlpShape shape;
  size_t batch;
  double losses[3];
  double weights[4], shifts[4], means[4], variances[4];
};

// Computed by PyTorch 2.15 in 64-bit floats: autograd for the gradients, Adam in the form of Keras.
const Expected kExpected[] = {
    {kBinary,
     32,
     {2.14148267, 1.83576564, 2.11996123},
     {2.37287547, 35.6419305, 17.7040065, -8.91831619},
     {5.17729205, 1.29689797, 0.625180437, -0.617414363},
     {0.09239425, 6.4524375, 1.7828125, 1.79375},
     {4.91348317, 21.7961211, -23.4271523, -19.0736562}},
    {kBinary,
     5,
     {2.55264799, 2.28853422, 1.92473106},
     {2.45832354, 35.8327597, 17.5646507, -9.03762054},
     {5.16134197, 1.33154637, 0.60610398, -0.656413671},
     {0.7889272, 4.9148, 0.8424, 3.6488},
     {27.3396141, -12.31972, 88.5586, -4.41376}},
    {kFull,
     32,
     {2.45869433, 2.20330442, 2.26467237},
     {0.829429891, 8.74982066, 6.11063232, -4.6033666},
     {5.11002184, 1.25764733, 0.677395845, -0.623462869},
     {-0.0181835534, -0.511187022, -0.804395186, -1.10436162},
     {3.06336468, 5.95530227, 3.78907956, -6.44338418}},
    {kFull,
     5,
     {2.06996503, 1.71746168, 2.75803867},
     {0.278055748, 8.61675683, 6.10798457, -4.65709699},
     {5.12472093, 1.31273478, 0.66619531, -0.659220987},
     {0.322116174, -0.537688837, -1.03594094, -1.10013978},
     {3.62978643, 5.81979906, 3.58621979, -6.31096705}},
};

TEST(MlpTrainerTest, ThreeStepsAsPyTorchTakesThem) {
  for (const Expected& expected : kExpected) {
    MlpTrainer trainer(expected.shape, expected.batch, {});
    trainer.load(made_up_parameters(expected.shape));
    for (size_t step = 0; step < 3; ++step) {
      const std::vector<uint16_t> labels = made_up_batch(expected.batch, step, &trainer);
      // The later losses come from PyTorch's own form of Adam, whose epsilon stands elsewhere.
      EXPECT_NEAR(trainer.step(labels), expected.losses[step], step == 0 ? 1e-5 : 1e-4);
    }
    const MlpParameters after = trainer.parameters();
    size_t weight = 0;
    size_t unit = 0;
    for (size_t layer = 0; layer < 4; ++layer) {
      const size_t in = expected.shape.widths[layer];
      const size_t out = expected.shape.widths[layer + 1];
      // PyTorch's weights stand output by output.
      EXPECT_NEAR(digest(in * out, [&](size_t j) { return after.weights[weight + j % in * out + j / in]; }),
                  expected.weights[layer], 1e-3);
      EXPECT_NEAR(digest(out, [&](size_t j) { return after.shifts[unit + j]; }), expected.shifts[layer],
                  1e-4);
      EXPECT_NEAR(digest(out, [&](size_t j) { return after.means[unit + j]; }), expected.means[layer], 1e-4);
      EXPECT_NEAR(digest(out, [&](size_t j) { return after.variances[unit + j]; }), expected.variances[layer],
                  1e-3);
      weight += in * out;
      unit += out;
    }
  }
}

TEST(MlpTrainerTest, SameBitsOnEveryInstructionSet) {
  const std::string before = kernels().name;
  for (const MlpShape& shape : {kBinary, kFull}) {
    std::vector<MlpParameters> results;
    for (const Kernels* table : supported_kernels()) {
      force_kernels(table->name);
      MlpTrainer trainer(shape, 32, {});
      trainer.load(made_up_parameters(shape));
      for (size_t step = 0; step < 20; ++step)
        trainer.step(made_up_batch(step % 3 == 0 ? 32 : 7, step, &trainer));
      results.push_back(trainer.parameters());
    }
    for (const MlpParameters& result : results) EXPECT_EQ(result, results.front());
  }
  force_kernels(before);
}

// The same on any machine: a client on ARM and a server on x86 must agree.
TEST(MlpTrainerTest, SameBitsOnEveryMachine) {
  const auto hash = [](const MlpShape& shape) {
    MlpTrainer trainer(shape, 32, {});
    trainer.load(made_up_parameters(shape));
    for (size_t step = 0; step < 50; ++step) trainer.step(made_up_batch(32, step, &trainer));
    const MlpParameters after = trainer.parameters();
    uint64_t sum = 0;
    for (const auto* values : {&after.weights, &after.shifts, &after.means, &after.variances}) {
      for (const float value : *values) sum = sum * 6364136223846793005u + std::bit_cast<uint32_t>(value);
    }
    return sum;
  };
  EXPECT_EQ(hash(kBinary), 1221491970640659735u);
  EXPECT_EQ(hash(kFull), 18236152735888898106u);
}

TEST(MlpTrainerTest, LoadingStartsTheOptimiserAnew) {
  MlpTrainer trainer(kBinary, 32, {});
  const auto run = [&] {
    trainer.load(made_up_parameters(kBinary));
    for (size_t step = 0; step < 3; ++step) trainer.step(made_up_batch(32, step, &trainer));
    return trainer.parameters();
  };
  EXPECT_EQ(run(), run());
}

TEST(MlpTrainerTest, WhatIsLoadedComesBack) {
  for (const MlpShape& shape : {kBinary, MlpShape{{3, 5, 2}, false}, MlpShape{{1, 1}, true}}) {
    MlpTrainer trainer(shape, 4, {});
    const MlpParameters parameters = initial_parameters(shape, RandomStream({1, "mlp"}));
    trainer.load(parameters);
    EXPECT_EQ(trainer.parameters(), parameters);
  }
}

TEST(MlpTrainerTest, ABatchOfOneLeavesTheRunningStatistics) {
  MlpTrainer trainer(kBinary, 32, {});
  const MlpParameters before = made_up_parameters(kBinary);
  trainer.load(before);
  EXPECT_TRUE(std::isfinite(trainer.step(made_up_batch(1, 0, &trainer))));
  EXPECT_EQ(trainer.parameters().means, before.means);
  EXPECT_EQ(trainer.parameters().variances, before.variances);
  EXPECT_NE(trainer.parameters().shifts, before.shifts);
}

TEST(MlpTrainerTest, LearnsWhatASignOfOneColumnSays) {
  for (const bool binary : {true, false}) {
    const MlpShape shape{{4, 16, 2}, binary};
    MlpTrainer trainer(shape, 32, {.rate = 0.01});
    trainer.load(initial_parameters(shape, RandomStream({3, "mlp"})));
    RandomStream random({3, "data"});
    float loss = 0;
    for (int step = 0; step < 400; ++step) {
      std::vector<uint16_t> labels;
      for (size_t r = 0; r < 32; ++r) {
        for (size_t f = 0; f < 4; ++f) trainer.input(r)[f] = static_cast<float>(2 * random.uniform() - 1);
        labels.push_back(trainer.input(r)[2] > 0 ? 1 : 0);
      }
      loss = trainer.step(labels);
    }
    EXPECT_LT(loss, 0.35) << binary;
  }
}

// A step of gradient descent is the rate times the gradient, which a step of twice the rate shows.
TEST(MlpTrainerTest, PlainDescent) {
  const MlpParameters before = made_up_parameters(kFull);
  const auto change = [&](double rate) {
    MlpTrainer trainer(kFull, 32, {.rate = rate}, MlpOptimizer::kDescent);
    trainer.load(before);
    trainer.step(made_up_batch(32, 0, &trainer));
    const MlpParameters after = trainer.parameters();
    std::vector<double> changes;
    for (size_t i = 0; i < before.weights.size(); ++i)
      changes.push_back(static_cast<double>(after.weights[i]) - before.weights[i]);
    return changes;
  };
  // The loss of another step falls by the rate times the squared gradient, to first order.
  const std::vector<double> once = change(1e-3);
  const std::vector<double> twice = change(2e-3);
  double square = 0;
  for (size_t i = 0; i < once.size(); ++i) {
    EXPECT_NEAR(twice[i], 2 * once[i], 2e-7);
    square += once[i] * once[i];
  }
  MlpTrainer trainer(kFull, 32, {.rate = 1e-3}, MlpOptimizer::kDescent);
  trainer.load(before);
  const std::vector<uint16_t> labels = made_up_batch(32, 0, &trainer);
  const double loss = trainer.step(labels);
  MlpParameters without_shifts = before;
  without_shifts.weights = trainer.parameters().weights;
  trainer.load(without_shifts);
  EXPECT_NEAR(loss - trainer.step(labels), square / 1e-3, 0.05 * square / 1e-3);
}

TEST(MlpTest, GlorotsLimitsAndFreshNorms) {
  const MlpParameters parameters = initial_parameters(kBinary, RandomStream({5, "mlp"}));
  ASSERT_EQ(parameters.weights.size(), 3552u);
  ASSERT_EQ(parameters.shifts.size(), 118u);
  float largest = 0;
  for (size_t i = 0; i < 14 * 64; ++i) largest = std::max(largest, std::fabs(parameters.weights[i]));
  EXPECT_LE(largest, std::sqrt(6.0f / 78));
  EXPECT_GT(largest, 0.95f * std::sqrt(6.0f / 78));
  EXPECT_EQ(parameters.means, std::vector<float>(118, 0));
  EXPECT_EQ(parameters.variances, std::vector<float>(118, 1));
}

}  // namespace
}  // namespace bitfed
