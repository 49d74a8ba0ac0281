#include "bitfed/federated/tsetlin/booleanizer_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/base/error_text.h"
#include "tests/federated/hand_made.h"

namespace bitfed {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

// Two columns: `first`, and the constant 5.
Dataset table(const std::vector<float>& first) {
  Dataset dataset;
  dataset.name = "table";
  dataset.columns = {"first", "second"};
  dataset.class_names = {"no", "yes"};
  for (const float value : first) {
    dataset.values.insert(dataset.values.end(), {value, 5});
    dataset.labels.push_back(dataset.labels.size() % 2);
  }
  return dataset;
}

std::string recipe(const std::string& method) {
  return "[data]\nbooleanize = { kind = \"quantile\", bins = 4 }\n"
         "[model]\nname = \"tm\"\nclauses = 4\n[client]\nepochs = 2\n[method]\nname = \"" +
         method + "\"\n";
}

State train(const Method& method, const State& broadcast, const Dataset& samples, uint32_t client) {
  const ClientContext context{RandomStream({0, "client", 1, client}), {}, {}, {}};
  return method.make_client()->train(decode(encode(broadcast), "broadcast"), samples, context);
}

const Dataset& small() {
  static const Dataset kData = table({40, 10, 30, 20});
  return kData;
}
const Dataset& large() {
  static const Dataset kData = table({8, 1, 7, 2, 6, 3, 5, 4});
  return kData;
}

// Cuts at ranks 2, 4 and 6 of eight rows, at 1, 2 and 3 of four.
TEST(BooleanizerFitTest, QuantilesOfAClientByHand) {
  State broadcast;
  broadcast.add_scalar<uint32_t>("quantile_bins", 4);
  ASSERT_TRUE(asks_for_quantiles(broadcast));
  EXPECT_FALSE(asks_for_quantiles(State()));
  const State of_large = quantile_message(broadcast, large());
  EXPECT_EQ(of_large.scalar<uint32_t>("samples"), 8u);
  EXPECT_THAT(of_large.values<float>("quantiles", {2, 3}), ElementsAre(3, 5, 7, 5, 5, 5));
  EXPECT_THAT(quantile_message(broadcast, small()).values<float>("quantiles", {2, 3}),
              ElementsAre(20, 30, 40, 5, 5, 5));
  EXPECT_THAT(quantile_message(broadcast, table({9})).values<float>("quantiles", {2, 3}),
              ElementsAre(9, 9, 9, 5, 5, 5));
}

TEST(BooleanizerFitTest, BadNumberOfBins) {
  for (const uint32_t bins : {0u, 1u, 5000u}) {
    State broadcast;
    broadcast.add_scalar<uint32_t>("quantile_bins", bins);
    EXPECT_THAT(error_text([&] { quantile_message(broadcast, small()); }), HasSubstr("quantile_bins"));
  }
}

class RoundZeroTest : public testing::TestWithParam<const char*> {};

TEST_P(RoundZeroTest, CutsAreTheMeanWeightedBySamples) {
  const Dataset prototype = table({});
  const auto method = hand_made::method_of(recipe(GetParam()), prototype);
  const auto server = method->make_server();
  ASSERT_TRUE(server->needs_preparation());
  server->accept(1, train(*method, server->broadcast(0), large(), 1));
  server->accept(0, train(*method, server->broadcast(0), small(), 0));
  server->finish_round(0);
  ASSERT_FALSE(server->needs_preparation());

  TsetlinRecipe fitted = read_tsetlin_recipe({Config::parse(recipe(GetParam()), "recipe"), prototype, 0});
  take_booleanizers(decode(encode(server->broadcast(1)), "broadcast"), &fitted);
  const std::vector<std::vector<float>> cuts = fitted.specialists[0].booleanizer.cuts;
  ASSERT_EQ(cuts.size(), 2u);
  EXPECT_THAT(cuts[0], ElementsAre(FloatEq(104.0f / 12), FloatEq(160.0f / 12), FloatEq(216.0f / 12)));
  EXPECT_THAT(cuts[1], ElementsAre(5));  // three equal cuts are one

  // Four bits a row: the machine has eight literals.
  const State upload = train(*method, server->broadcast(1), large(), 1);
  EXPECT_EQ(read_upload(upload, fitted).banks[0][0].actions.columns(), 8u);
  server->accept(1, upload);
  server->finish_round(1);
  ThreadPool pool(1);
  EXPECT_EQ(server->model()->scores(small(), pool).size(), 8u);
}

TEST_P(RoundZeroTest, FittedCutsOutliveARestart) {
  const auto method = hand_made::method_of(recipe(GetParam()), table({}));
  const auto server = method->make_server();
  server->accept(0, train(*method, server->broadcast(0), small(), 0));
  server->finish_round(0);
  const auto restored = method->make_server();
  restored->restore(decode(encode(server->save()), "checkpoint"));
  EXPECT_FALSE(restored->needs_preparation());
  EXPECT_EQ(restored->broadcast(1), server->broadcast(1));
}

TEST_P(RoundZeroTest, BadAnswersAreRefused) {
  const auto method = hand_made::method_of(recipe(GetParam()), table({}));
  const auto server = method->make_server();
  const auto refusal = [&](uint32_t samples, const std::vector<uint64_t>& shape,
                           const std::vector<float>& values) {
    State message;
    message.add_scalar<uint32_t>("samples", samples);
    message.add("quantiles", shape, values);
    return error_text([&] { server->accept(0, message); });
  };
  EXPECT_EQ(refusal(4, {2, 3}, {1, 2, 3, 1, 1, 1}), "");
  EXPECT_THAT(refusal(0, {2, 3}, {1, 2, 3, 1, 1, 1}), HasSubstr("'samples'"));
  EXPECT_THAT(refusal(4, {3, 2}, {1, 2, 3, 4, 5, 6}), HasSubstr("'quantiles'"));
  EXPECT_THAT(refusal(4, {2, 3}, {1, 3, 2, 1, 1, 1}), HasSubstr("ascend"));
  EXPECT_THAT(refusal(4, {2, 3}, {1, 2, std::numeric_limits<float>::quiet_NaN(), 1, 1, 1}),
              HasSubstr("finite"));
  EXPECT_THAT(refusal(4, {2, 3}, {1, 2, std::numeric_limits<float>::infinity(), 1, 1, 1}),
              HasSubstr("finite"));
  EXPECT_THAT(error_text([&] { server->accept(0, State()); }), HasSubstr("'samples'"));
}

INSTANTIATE_TEST_SUITE_P(Methods, RoundZeroTest, testing::Values("fedtm-bank", "fedtmos", "fedtm"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(BooleanizerFitTest, ImagesNeedNoRoundZero) {
  const auto method = hand_made::method_of("[model]\nname = \"tm\"\n", hand_made::images(3, 2));
  EXPECT_FALSE(method->make_server()->needs_preparation());
}

TEST(BooleanizerFitTest, BooleanizersOfAnotherModelAreRefused) {
  TsetlinRecipe fitted = read_tsetlin_recipe({Config::parse(recipe("fedtm"), "recipe"), table({}), 0});
  State broadcast;
  broadcast.metadata["booleanizers"] = "[]";
  EXPECT_THAT(error_text([&] { take_booleanizers(broadcast, &fitted); }),
              HasSubstr("expected an array of 1"));
  broadcast.metadata["booleanizers"] = "{";
  EXPECT_THAT(error_text([&] { take_booleanizers(broadcast, &fitted); }), HasSubstr("not valid JSON"));
}

}  // namespace
}  // namespace bitfed
