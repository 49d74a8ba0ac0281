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
    dataset.values.append(std::array{value, 5.0f});
    dataset.labels.push_back(value > 15 ? 1 : 0);
  }
  return dataset;
}

std::string recipe(const std::string& method) {
  return "[data]\nbooleanize = { kind = \"quantile\", bins = 4 }\n"
         "[model]\nname = \"tm\"\nclauses = 4\n[client]\nepochs = 20\n[method]\nname = \"" +
         method + "\"\n";
}

State train(const Method& method, const State& broadcast, const Dataset& samples, uint32_t client) {
  const ClientContext context{RandomStream({0, "client", 1, client}), {}, {}, {}};
  return method.make_client()->train(decode(encode(broadcast), "broadcast"), samples, context);
}

// Every value four times: enough rows for their quantiles to be sent as they are.
Dataset table_of_fours(const std::vector<float>& values) {
  std::vector<float> rows;
  for (const float value : values) rows.insert(rows.end(), 4, value);
  return table(rows);
}

const Dataset& small() {
  static const Dataset kData = table_of_fours({40, 10, 30, 20});
  return kData;
}
const Dataset& large() {
  static const Dataset kData = table_of_fours({8, 1, 7, 2, 6, 3, 5, 4});
  return kData;
}

// Cuts at ranks 8, 16 and 24 of 32 rows, at 4, 8 and 12 of 16.
TEST(BooleanizerFitTest, QuantilesOfAClientByHand) {
  State broadcast;
  broadcast.add_scalar<uint32_t>("quantile_bins", 4);
  ASSERT_TRUE(asks_for_quantiles(broadcast));
  EXPECT_FALSE(asks_for_quantiles(State()));
  const State of_large = quantile_message(broadcast, large());
  EXPECT_EQ(of_large.scalar<uint32_t>("samples"), 32u);
  EXPECT_THAT(of_large.values<float>("quantiles", {2, 3}), ElementsAre(3, 5, 7, 5, 5, 5));
  EXPECT_THAT(quantile_message(broadcast, small()).values<float>("quantiles", {2, 3}),
              ElementsAre(20, 30, 40, 5, 5, 5));
  EXPECT_THAT(quantile_message(broadcast, table({9})).values<float>("quantiles", {2, 3}),
              ElementsAre(9, 9, 9, 5, 5, 5));
}

// 120 rows and 256 bins: no value of a row is sent, and the quantiles are near those of the rows.
TEST(BooleanizerFitTest, FewSamplesAreNotSentThemselves) {
  std::vector<float> rows;
  for (int i = 0; i < 120; ++i) rows.push_back(static_cast<float>(i * i) / 7);
  State broadcast;
  broadcast.add_scalar<uint32_t>("quantile_bins", 256);
  const auto sent = quantile_message(broadcast, table(rows)).values<float>("quantiles", {2, 255});
  const std::vector<float> first(sent.begin(), sent.begin() + 255);
  EXPECT_TRUE(std::is_sorted(first.begin(), first.end()));
  for (const float row : rows) EXPECT_THAT(first, testing::Not(testing::Contains(row)));
  EXPECT_NEAR(first[127], rows[60], 50);
  EXPECT_THAT(std::vector<float>(sent.begin() + 255, sent.end()), testing::Each(5.0f));
  // By hand: eight rows in two cells with means 2.5 and 6.5, at 1/4 and 3/4.
  broadcast = State();
  broadcast.add_scalar<uint32_t>("quantile_bins", 4);
  const auto few =
      quantile_message(broadcast, table({8, 1, 7, 2, 6, 3, 5, 4})).values<float>("quantiles", {2, 3});
  EXPECT_THAT(few, ElementsAre(2.5f, 4.5f, 6.5f, 5, 5, 5));
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
  if (std::string(GetParam()) != "fedtm") {  // which sends states of automata
    EXPECT_EQ(read_upload(upload, fitted).banks[0][0].actions.columns(), 8u);
  }
  server->accept(1, upload);
  server->accept(0, train(*method, server->broadcast(1), small(), 0));
  server->finish_round(1);
  ThreadPool pool(1);
  EXPECT_EQ(server->model()->scores(small(), pool).size(), 32u);
}

// A client that claims ±3e38 does not move the cuts where the recipe bounds its clients.
TEST_P(RoundZeroTest, ALiarDoesNotMoveBoundedCuts) {
  for (const char* bound : {"most_votes = 100", "most_samples = 600"}) {
    const std::string text = recipe(GetParam()) + "[federation]\n" + bound + "\n";
    const auto method = hand_made::method_of(text, table({}));
    const auto server = method->make_server();
    State lie;
    lie.add_scalar<uint32_t>("samples", UINT32_MAX);
    lie.add("quantiles", {2, 3}, std::vector<float>{-3e38f, 0, 3e38f, -3e38f, 0, 3e38f});
    server->accept(0, lie);
    for (uint32_t client = 1; client < 4; ++client)
      server->accept(client, train(*method, server->broadcast(0), large(), client));
    server->finish_round(0);
    TsetlinRecipe fitted = read_tsetlin_recipe({Config::parse(text, "recipe"), table({}), 0});
    take_booleanizers(decode(encode(server->broadcast(1)), "broadcast"), &fitted);
    EXPECT_THAT(fitted.specialists[0].booleanizer.cuts[0], ElementsAre(3, 5, 7)) << bound;
  }
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
