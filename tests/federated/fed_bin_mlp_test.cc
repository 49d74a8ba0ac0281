#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bitfed/federated/mlp/column_ranges.h"
#include "bitfed/federated/mlp/mlp_messages.h"
#include "bitfed/nn/mlp/mlp_trainer.h"
#include "tests/base/error_text.h"
#include "tests/federated/hand_made.h"

namespace bitfed {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kRecipe =
    "[model]\nname = \"mlp\"\nhidden = [4]\n[method]\nname = \"fed-bin-mlp\"\nlambda = 0.5\nscaling = "
    "\"extremes\"\n";
const MlpShape kShape{{2, 4, 2}, true};

Dataset table(size_t rows) {
  RandomStream random({4, "table"});
  Dataset data;
  data.name = "table";
  data.columns = {"a", "b"};
  data.class_names = {"no", "yes"};
  for (size_t i = 0; i < rows; ++i) {
    data.values.push_back(static_cast<float>(random.normal()));
    data.values.push_back(static_cast<float>(random.normal()));
    data.labels.push_back(data.row(i)[0] > data.row(i)[1] ? 1 : 0);
  }
  return data;
}

MlpParameters parameters_of(float weight, float shift) {
  MlpParameters parameters = initial_parameters(kShape, RandomStream({0, "any"}));
  parameters.weights.assign(kShape.weights(), weight);
  parameters.shifts.assign(kShape.units(), shift);
  return parameters;
}

State upload_of(const MlpParameters& parameters, uint32_t samples,
                MlpPrecision precision = MlpPrecision::kFloats) {
  State state;
  state.add_scalar<uint32_t>("samples", samples);
  add_parameters(parameters, precision, &state);
  return state;
}

State ranges_of(float least, float most) {
  State state;
  state.add("ranges", {2, 2}, std::vector<float>{least, least, most, most});
  state.add_scalar<uint32_t>("samples", 10);
  return state;
}

std::unique_ptr<Method> method(const std::string& more = "") {
  return hand_made::method_of(kRecipe + more, table(0));
}

std::unique_ptr<ServerHalf> prepared_server(const Method& method) {
  auto server = method.make_server();
  EXPECT_TRUE(server->needs_preparation());
  EXPECT_TRUE(asks_for_ranges(server->broadcast(0)));
  server->accept(0, ranges_of(-2, 1));
  server->accept(1, ranges_of(0, 2));
  server->finish_round(0);
  EXPECT_FALSE(server->needs_preparation());
  return server;
}

State ranges_of(const std::vector<float>& ranges, uint32_t samples) {
  State state;
  state.add("ranges", {2, 2}, ranges);
  state.add_scalar<uint32_t>("samples", samples);
  return state;
}

TEST(ColumnRangesTest, ExtremesOfAllClientsTogether) {
  ColumnRanges ranges(RangeKind::kExtremes, 2);
  ranges.accept(0, ranges_of({-1, 7, 3, 7}, 5));
  ranges.accept(1, ranges_of({0, 7, 5, 7}, 90));
  const ColumnScaling scaling = ranges.scaling();  // -1 … 5, and a constant
  EXPECT_THAT(scaling.offset, ElementsAre(2, 7));
  EXPECT_FLOAT_EQ(scaling.factor[0], 1.0f / 3);
  EXPECT_EQ(scaling.factor[1], 0);
  float inputs[2];
  scaling.apply(std::vector<float>{8, 7}, inputs);
  EXPECT_FLOAT_EQ(inputs[0], 2);  // beyond what was seen, and not clipped
  EXPECT_EQ(inputs[1], 0);
}

TEST(ColumnRangesTest, MeanOfQuantilesBySamples) {
  ColumnRanges ranges(RangeKind::kQuantiles, 2);
  ranges.accept(7, ranges_of({-2, 0, 2, 4}, 30));
  ranges.accept(3, ranges_of({2, 0, 6, 4}, 10));
  const ColumnScaling scaling = ranges.scaling();  // -1 … 3, 0 … 4
  EXPECT_THAT(scaling.offset, ElementsAre(1, 2));
  EXPECT_THAT(scaling.factor, ElementsAre(0.5f, 0.5f));
  float inputs[2];
  scaling.apply(std::vector<float>{1000, 0}, inputs);
  EXPECT_THAT(inputs, ElementsAre(2, -1));
}

// One of 30 clients that claims ±3e38 does not move a range where the recipe bounds its clients.
TEST(ColumnRangesTest, ALiarDoesNotMoveABoundedRange) {
  Combining median, trimmed, samples, norm;
  median.kind = Combining::Kind::kMedian;
  trimmed.kind = Combining::Kind::kTrimmedMean;
  samples.max_samples = 600;
  norm.norm_bound = 5;
  for (const Combining& combining : {median, trimmed, samples, norm}) {
    for (const RangeKind kind : {RangeKind::kExtremes, RangeKind::kQuantiles}) {
      ColumnRanges ranges(kind, 2, combining);
      ranges.accept(0, ranges_of({-3e38f, -3e38f, 3e38f, 3e38f}, UINT32_MAX));
      for (uint32_t client = 1; client < 30; ++client) ranges.accept(client, ranges_of({-1, 0, 1, 4}, 100));
      const ColumnScaling scaling = ranges.scaling();
      EXPECT_EQ(scaling.factor, (std::vector<float>{1, 0.5f}));
      EXPECT_EQ(scaling.offset, (std::vector<float>{0, 2}));
    }
  }
}

TEST(ColumnRangesTest, AreTheSamplesOwn) {
  Dataset data = table(41);
  for (size_t i = 0; i < 41; ++i) {
    data.values.own()[2 * i] = static_cast<float>((i * 7) % 41);  // 0 … 40 in some order
    data.values.own()[2 * i + 1] = 5;
  }
  const auto sent = [&](RangeKind kind) {
    return ranges_message(ask_for_ranges(kind), data).values<float>("ranges", {2, 2});
  };
  EXPECT_THAT(sent(RangeKind::kExtremes), ElementsAre(0, 5, 40, 5));
  EXPECT_THAT(sent(RangeKind::kQuantiles), ElementsAre(2, 5, 38, 5));  // 41 / 20 on either side
}

TEST(ColumnRangesTest, RefusesWhatIsNoRange) {
  for (const auto& [least, most] : {std::pair{1.0f, 0.0f}, {NAN, 1.0f}, {0.0f, INFINITY}}) {
    for (const RangeKind kind : {RangeKind::kExtremes, RangeKind::kQuantiles}) {
      ColumnRanges ranges(kind, 2);
      EXPECT_THAT(error_text([&, l = least, m = most] { ranges.accept(0, ranges_of(l, m)); }),
                  HasSubstr("expected two finite ascending values"));
    }
  }
  ColumnRanges ranges(RangeKind::kQuantiles, 2);
  EXPECT_THAT(error_text([&] {
                ranges.accept(0, ranges_of({0, 0, 1, INFINITY}, 10));
              }),
              HasSubstr("column 2"));
  EXPECT_NO_THROW(ranges.accept(0, ranges_of(-3e38f, 3e38f)));
  EXPECT_GT(ranges.scaling().factor[0], 0);
}

// A model with such a limit could not be written.
TEST(FedBinMlpTest, RefusesAScalingThatIsNotFinite) {
  for (const float limit : {INFINITY, NAN, -1.0f}) {
    State message;
    add_scaling({{0, 0}, {1, 1}, limit}, &message);
    EXPECT_THAT(error_text([&] { read_scaling(message, 2); }), HasSubstr("tensor 'limit'"));
  }
}

TEST(FedBinMlpTest, ServerAveragesBySamples) {
  const auto server = prepared_server(*method());
  server->accept(0, upload_of(parameters_of(0.5f, 1), 30));
  server->accept(1, upload_of(parameters_of(-0.5f, 3), 10));
  server->finish_round(1);
  const MlpParameters mean = read_parameters(server->broadcast(2), kShape);
  EXPECT_EQ(mean.weights, std::vector<float>(kShape.weights(), 0.25f));
  EXPECT_EQ(mean.shifts, std::vector<float>(kShape.units(), 1.5f));
  const ColumnScaling scaling = read_scaling(server->broadcast(2), 2);
  EXPECT_THAT(scaling.offset, ElementsAre(0, 0));
  EXPECT_THAT(scaling.factor, ElementsAre(0.5f, 0.5f));
}

TEST(FedBinMlpTest, VotesBecomeLatentWeightsThatARoundCanOverturn) {
  const auto server = prepared_server(*method("upload = \"bits\"\n"));
  server->accept(0, upload_of(parameters_of(0.01f, 1), 30, MlpPrecision::kSigns));
  server->accept(1, upload_of(parameters_of(-0.9f, 3), 10, MlpPrecision::kSigns));
  server->finish_round(1);
  // Of 40 samples 30 say +, 10 say -; a client has 20 on average, one step of a thousandth.
  const MlpParameters mean = read_parameters(server->broadcast(2), kShape);
  for (const float weight : mean.weights) EXPECT_FLOAT_EQ(weight, 0.5f * 0.0005f);
  EXPECT_EQ(mean.shifts, std::vector<float>(kShape.units(), 1.5f));
}

// One step of one sample moves no weight (its batch is its own mean), so that the weights that come up are
// those that training started from.
MlpParameters started_from(const Method& method, const MlpParameters& global, const State& kept,
                           State* now_kept = nullptr) {
  State broadcast;
  add_scaling({{0, 0}, {1, 1}, 0}, &broadcast);
  add_parameters(global, MlpPrecision::kFloats, &broadcast);
  const ClientContext context{RandomStream({1, "client"}),
                              {},
                              [](double) {},
                              [](uint64_t) {},
                              kept,
                              [&](State state) {
                                if (now_kept != nullptr) *now_kept = std::move(state);
                              }};
  return read_parameters(method.make_client()->train(broadcast, table(1), context), kShape);
}

TEST(FedBinMlpTest, AClientStartsFromABlend) {
  State kept;
  EXPECT_EQ(started_from(*method(), parameters_of(0.3f, 0), {}, &kept).weights,
            std::vector<float>(kShape.weights(), 0.3f));
  // lambda 0.5: (0.9 + 0.5 * 0.3) / 1.5
  const auto blended = started_from(*method(), parameters_of(0.9f, 0), kept);
  for (const float weight : blended.weights) EXPECT_FLOAT_EQ(weight, 0.7f);
  // To the letter: 0.6 + 0.5 * 0.3
  const auto literal = started_from(*method("mix = \"equation3\"\n"), parameters_of(0.6f, 0), kept);
  for (const float weight : literal.weights) EXPECT_FLOAT_EQ(weight, 0.75f);
}

// Figure 4: a fresh network + lambda * global, whatever the client had.
TEST(FedBinMlpTest, Figure4StartsAfresh) {
  const auto figure4 = method("mix = \"figure4\"\n");
  const MlpParameters without = started_from(*figure4, parameters_of(0, 0), {});
  const MlpParameters with = started_from(*figure4, parameters_of(0.2f, 0), {});
  for (size_t i = 0; i < with.weights.size(); ++i) {
    EXPECT_NEAR(with.weights[i], std::clamp(without.weights[i] + 0.1f, -1.0f, 1.0f), 1e-6);
  }
  EXPECT_GT(*std::max_element(without.weights.begin(), without.weights.end()), 0);
  EXPECT_LT(*std::min_element(without.weights.begin(), without.weights.end()), 0);
}

TEST(FedBinMlpTest, ThePersonalModelIsWhatWasTrained) {
  const auto fed = method("upload = \"bits\"\n");
  State kept;
  const MlpParameters uploaded = started_from(*fed, parameters_of(-0.4f, 0), {}, &kept);
  EXPECT_EQ(uploaded.weights, std::vector<float>(kShape.weights(), -1));
  EXPECT_EQ(read_parameters(kept, kShape).weights, std::vector<float>(kShape.weights(), -0.4f));
  EXPECT_EQ(fed->make_client()->personal_model(kept)->class_count(), 2u);
}

TEST(FedBinMlpTest, SavedAndRestored) {
  const auto fed = method();
  const auto server = prepared_server(*fed);
  server->accept(0, upload_of(parameters_of(0.5f, 1), 30));
  server->finish_round(1);
  const auto other = fed->make_server();
  other->restore(decode(encode(server->save()), "saved"));
  EXPECT_FALSE(other->needs_preparation());
  EXPECT_EQ(other->broadcast(2), server->broadcast(2));
  EXPECT_EQ(other->model()->state(), server->model()->state());
}

TEST(FedBinMlpTest, OneBitUploadsAreSmall) {
  const MlpShape paper{{14, 64, 32, 16, 6}, true};
  State upload;
  add_parameters(initial_parameters(paper, RandomStream({1, "x"})), MlpPrecision::kSigns, &upload);
  EXPECT_EQ(upload.tensor_bytes(), 444u + 118 * 3 * 2);
}

TEST(FedBinMlpTest, SixteenBitsAreTheNearest) {
  MlpParameters parameters = parameters_of(1, 0);
  parameters.shifts[0] = 1.00390625f;   // halfway between 1 and 1.0078125: to the even 1
  parameters.shifts[1] = 1.01171875f;   // halfway to 1.015625: to the even one above
  parameters.shifts[2] = -3.14159265f;  // -3.140625
  const MlpParameters read = read_parameters(upload_of(parameters, 1, MlpPrecision::kSigns), kShape);
  EXPECT_EQ(read.shifts[0], 1.0f);
  EXPECT_EQ(read.shifts[1], 1.015625f);
  EXPECT_EQ(read.shifts[2], -3.140625f);
}

TEST(FedBinMlpTest, RefusesHostileUploads) {
  const auto server = prepared_server(*method());
  const auto refused = [&](const State& upload) { return error_text([&] { server->accept(0, upload); }); };
  EXPECT_THAT(refused(upload_of(parameters_of(0, 0), 0)), HasSubstr("tensor 'samples': found 0"));
  EXPECT_THAT(refused(upload_of(parameters_of(NAN, 0), 5)), HasSubstr("tensor 'weights': expected finite"));
  EXPECT_THAT(refused(upload_of(parameters_of(0, 1e30f), 5)), HasSubstr("tensor 'norms': expected finite"));
  MlpParameters negative = parameters_of(0, 0);
  negative.variances[3] = -1;
  EXPECT_THAT(refused(upload_of(negative, 5)), HasSubstr("negative variance"));
  State small;
  small.add_scalar<uint32_t>("samples", 1);
  add_parameters(initial_parameters({{2, 3, 2}, true}, RandomStream({1, "x"})), MlpPrecision::kFloats,
                 &small);
  EXPECT_THAT(refused(small), HasSubstr("weights"));
  // None of it has left a trace.
  server->accept(1, upload_of(parameters_of(0.5f, 0), 1));
  server->finish_round(1);
  EXPECT_EQ(read_parameters(server->broadcast(2), kShape).weights,
            std::vector<float>(kShape.weights(), 0.5f));
}

TEST(FedBinMlpTest, MedianAndNormBound) {
  const auto careful = prepared_server(*method("[federation]\ncombine = \"median\"\n"));
  for (const float weight : {0.5f, -1000.0f, 0.25f})
    careful->accept(static_cast<uint32_t>(weight * 4 + 4000), upload_of(parameters_of(weight, weight), 9));
  careful->finish_round(1);
  EXPECT_THAT(read_parameters(careful->broadcast(2), kShape).weights, Each(0.25f));
  EXPECT_THAT(read_parameters(careful->broadcast(2), kShape).shifts, Each(0.25f));

  const auto bounded = prepared_server(*method("[federation]\nnorm_bound = 0.5\n"));
  const std::vector<float> before = read_parameters(bounded->broadcast(1), kShape).weights;
  bounded->accept(0, upload_of(parameters_of(1000, 0), 1));
  bounded->finish_round(1);
  double square = 0;
  const std::vector<float> after = read_parameters(bounded->broadcast(2), kShape).weights;
  for (size_t i = 0; i < before.size(); ++i) square += std::pow(after[i] - before[i], 2);
  EXPECT_NEAR(std::sqrt(square), 0.5, 1e-4);
  EXPECT_THAT(error_text([] { method("upload = \"bits\"\n[federation]\nnorm_bound = 1\n"); }),
              HasSubstr("federation.norm_bound: found together with method.upload"));
}

TEST(FedBinMlpTest, ADivergingLossIsSaidAndNotUploaded) {
  const auto fed = hand_made::method_of(
      "[model]\nname = \"mlp\"\nprecision = \"full\"\nhidden = [4]\n[method]\nname = \"fed-bin-mlp\"\n",
      table(0));
  MlpParameters broken = parameters_of(0.5f, 0);
  broken.weights.assign(kShape.weights(), 3e6f);
  State broadcast;
  add_scaling({{0, 0}, {3e38f, 3e38f}, 0}, &broadcast);
  add_parameters(broken, MlpPrecision::kFloats, &broadcast);
  const ClientContext context{
      RandomStream({1, "client"}), {}, [](double) {}, [](uint64_t) {}, {}, [](State) {}};
  EXPECT_THAT(
      error_text([&] { fed->make_client()->train(broadcast, table(40), context); }, Error::Kind::kFailure),
      HasSubstr("lower client.learning_rate"));
}

TEST(FedBinMlpTest, RecipesThatMakeNoSense) {
  EXPECT_THAT(error_text([] { method("mix = \"figure5\"\n"); }), HasSubstr("method.mix"));
  EXPECT_THAT(error_text([] {
                hand_made::method_of(
                    "[model]\nname = \"mlp\"\nprecision = \"full\"\n[method]\nname = "
                    "\"fed-bin-mlp\"\nupload = \"bits\"\n",
                    table(0));
              }),
              HasSubstr("real-valued weights cannot be sent as signs"));
  EXPECT_THAT(error_text([] { hand_made::method_of(kRecipe, hand_made::images(3, 3)); }),
              HasSubstr("mlp needs a table of numbers"));
}

constexpr const char* kFedAvg =
    "[model]\nname = \"mlp\"\nhidden = [4]\n[method]\nname = \"fedavg\"\nscaling = \"extremes\"\n"
    "[client]\nepochs = 2\nbatch = 8\n";

// Two clients train from the server's parameters by themselves, step by step; the server takes the mean by
// samples. Nothing is kept, and what was kept does not matter.
TEST(FedAvgOfPerceptronsTest, TwoClientsStepByStep) {
  for (const std::string keys : {"", "optimizer = \"sgd\"\nlearning_rate = 0.05\n"}) {
    const bool is_sgd = !keys.empty();
    const MlpShape shape{{2, 4, 2}, false};
    const auto fedavg = hand_made::method_of(kFedAvg + keys, table(0));
    const auto server = prepared_server(*fedavg);
    const State broadcast = server->broadcast(1);
    const ColumnScaling scaling = read_scaling(broadcast, 2);
    std::vector<MlpParameters> expected;
    for (const uint32_t client : {0u, 1u}) {
      const Dataset data = table(client == 0 ? 20 : 10);
      MlpTrainer trainer(shape, 8, {.rate = is_sgd ? 0.05 : 0.001},
                         is_sgd ? MlpOptimizer::kDescent : MlpOptimizer::kAdam);
      trainer.load(read_parameters(broadcast, shape));
      std::vector<uint32_t> order(data.size());
      std::iota(order.begin(), order.end(), 0u);
      RandomStream random = RandomStream({client, "client"}).substream(0);
      for (int epoch = 0; epoch < 2; ++epoch) {
        random.shuffle(std::span(order));
        for (size_t first = 0; first < order.size(); first += 8) {
          std::vector<uint16_t> labels;
          for (size_t i = first; i < std::min(first + 8, order.size()); ++i) {
            scaling.apply(data.row(order[i]), trainer.input(i - first));
            labels.push_back(data.labels[order[i]]);
          }
          trainer.step(labels);
        }
      }
      expected.push_back(trainer.parameters());
      ClientContext context{RandomStream({client, "client"}), {}, [](double) {}, [](uint64_t) {}, {}, {}};
      context.kept.add_scalar<uint32_t>("junk", 7);
      context.keep = [](const State& /*state*/) { FAIL() << "FedAvg keeps nothing"; };
      const State upload = fedavg->make_client()->train(broadcast, data, context);
      EXPECT_EQ(read_parameters(upload, shape), expected.back());
      server->accept(client, upload);
    }
    server->finish_round(1);
    const MlpParameters mean = read_parameters(server->broadcast(2), shape);
    for (size_t i = 0; i < mean.weights.size(); ++i)
      EXPECT_NEAR(mean.weights[i], (2 * expected[0].weights[i] + expected[1].weights[i]) / 3, 1e-6);
    EXPECT_EQ(fedavg->make_client()->personal_model(State()), nullptr);
  }
}

TEST(FedAvgOfPerceptronsTest, WhatItTakes) {
  EXPECT_NO_THROW(hand_made::method_of("[method]\nname = \"fedavg\"\n", table(0)));  // a table: mlp
  EXPECT_THAT(error_text([] {
                hand_made::method_of(
                    "[model]\nprecision = \"binary\"\n[method]\nname = \"fedavg\"\n"
                    "[client]\noptimizer = \"sgd\"\n",
                    table(0));
              }),
              HasSubstr("client.optimizer: found 'sgd', expected 'adam' for a binary perceptron"));
  EXPECT_THAT(error_text([] {
                hand_made::method_of("[model]\nname = \"cnn4\"\n[method]\nname = \"fedavg\"\n", table(0));
              }),
              HasSubstr("is a table, and cnn4 needs images"));
  EXPECT_THAT(error_text([] {
                hand_made::method_of("[model]\nname = \"mlp\"\n[method]\nname = \"scaffold\"\n", table(0));
              }),
              HasSubstr("mlp"));
}

}  // namespace
}  // namespace bitfed
