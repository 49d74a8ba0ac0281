#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/base/error_text.h"
#include "tests/federated/hand_made.h"

namespace bitfed {
namespace {

using hand_made::Bank;
using hand_made::literals_of;
using hand_made::upload_of;
using hand_made::weights_of;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t kWidth = 3;
constexpr size_t kLiterals = 2 * kWidth;
constexpr size_t kClasses = 3;
constexpr float kThreshold = 1000;

std::string recipe(const std::string& method, size_t clauses = 2) {
  return "[model]\nname = \"tm\"\nthreshold = 1000\nclauses = " + std::to_string(clauses) +
         "\n[method]\nname = \"fedtmos\"\n" + method;
}

// Without the Gini index: no mean of sums of squares exceeds 1.
std::string unscaled(int models, int clusters = 30) {
  return recipe("gini_threshold = 1.0\nserver_models = " + std::to_string(models) +
                "\nclusters = " + std::to_string(clusters) + "\n");
}

std::unique_ptr<ServerHalf> server_of(const std::string& text) {
  return hand_made::method_of(text, hand_made::images(kWidth, kClasses))->make_server();
}

std::unique_ptr<TsetlinModel> fuse(const std::string& text, const std::vector<State>& uploads) {
  return hand_made::fuse(*server_of(text), uploads);
}

// A bank of two clauses with the same weight.
Bank flat_bank(uint16_t label, uint32_t samples, int32_t weight) {
  return {.label = label, .samples = samples, .weights = {weight, weight}, .clauses = {{0}, {1}}};
}

State client(const std::vector<Bank>& banks) {
  return upload_of(banks, kLiterals);
}

// 3 and 1 samples: sum p^2 = 9/16 + 1/16 = 0.625.
State lopsided() {
  return client({flat_bank(0, 3, 100), flat_bank(1, 1, 100)});
}

TEST(FedtmosTest, GiniAboveTheThresholdScales) {
  const auto model = fuse(recipe("gini_threshold = 0.6\nserver_models = 1\n"), {lopsided()});
  ASSERT_EQ(model->members().size(), 1u);
  // trunc(0.625 * 100 * 3 / 4) = trunc(46.875), trunc(0.625 * 100 / 4) = trunc(15.625)
  EXPECT_THAT(weights_of(model->members()[0], 0), ElementsAre(46, -46));
  EXPECT_THAT(weights_of(model->members()[0], 1), ElementsAre(15, -15));
}

TEST(FedtmosTest, GiniAtOrBelowTheThresholdDoesNot) {
  for (const char* threshold : {"0.625", "0.7", "1.0"}) {
    const auto model =
        fuse(recipe("server_models = 1\ngini_threshold = " + std::string(threshold) + "\n"), {lopsided()});
    EXPECT_THAT(weights_of(model->members()[0], 0), ElementsAre(75, -75)) << threshold;
    EXPECT_THAT(weights_of(model->members()[0], 1), ElementsAre(25, -25)) << threshold;
  }
}

// (0.625 + 1) / 2 = 0.8125 over two clients; 0.8125 * 100 * 3 / 4 = 60.9375.
TEST(FedtmosTest, GiniIsTheMeanOverClients) {
  const auto model = fuse(recipe("gini_threshold = 0.8\nserver_models = 1\n"),
                          {lopsided(), client({flat_bank(2, 7, 1000)})});
  EXPECT_THAT(weights_of(model->members()[0], 0), ElementsAre(60, -60));
  EXPECT_THAT(weights_of(model->members()[0], 2), ElementsAre(812, -812));
}

TEST(FedtmosTest, ScalingTruncates) {
  const State upload =
      client({{.label = 0, .samples = 3, .weights = {100, 7, 3, 1}, .clauses = {{0}, {1}, {2}, {3}}},
              {.label = 1, .samples = 1, .weights = {100, 7, 3, 1}, .clauses = {{0}, {1}, {2}, {3}}}});
  const auto model = fuse(recipe("gini_threshold = 1.0\nserver_models = 1\n", 4), {upload});
  EXPECT_THAT(weights_of(model->members()[0], 0), ElementsAre(75, -5, 2, 0));
  EXPECT_THAT(weights_of(model->members()[0], 1), ElementsAre(25, -1, 0, 0));
}

// A vector vanishes when its mean is below one after scaling, whatever its largest weight.
TEST(FedtmosTest, VanishedVectorsAreDropped) {
  const auto model_with = [](int32_t first) {
    const auto server = server_of(unscaled(1));
    // Class 1 has a quarter of the samples: 4 becomes 1, 3 becomes 0.
    const Bank small{.label = 1, .samples = 1, .weights = {first, 4}, .clauses = {{0}, {1}}};
    const auto model = hand_made::fuse(*server, {client({flat_bank(0, 3, 8), small})});
    return std::pair(weights_of(model->members()[0], 1), server->notes());
  };
  const auto [kept, kept_notes] = model_with(4);
  EXPECT_THAT(kept, ElementsAre(1, -1));
  EXPECT_THAT(kept_notes, Contains(HasSubstr("2 class vectors regrouped, 0 dropped")));
  const auto [dropped, dropped_notes] = model_with(3);
  EXPECT_THAT(dropped, Each(0));
  EXPECT_THAT(dropped_notes, Contains(HasSubstr("1 class vectors regrouped, 1 dropped")));
  const char* note = "clients hold class '1', but it has no clauses: it is never predicted";
  EXPECT_THAT(dropped_notes, Contains(note));
  EXPECT_THAT(kept_notes, Not(Contains(note)));
}

// Where all of them would vanish, none is scaled, and a note says so.
TEST(FedtmosTest, VectorsAreTakenAsTheyAreWhereAllWouldVanish) {
  const auto server = server_of(unscaled(1));
  const Bank first{.label = 0, .samples = 1, .weights = {1, 2}, .clauses = {{0}, {1}}};
  const Bank second{.label = 1, .samples = 3, .weights = {1, 1}, .clauses = {{1}, {0}}};
  const auto model = hand_made::fuse(*server, {client({first, second})});
  EXPECT_THAT(weights_of(model->members()[0], 0), ElementsAre(1, -2));
  EXPECT_THAT(weights_of(model->members()[0], 1), ElementsAre(1, -1));
  EXPECT_THAT(server->notes(), Contains(HasSubstr("weights of all 2 class vectors vanish")));
}

// Clusters P = {A0} around 100, Q = {B0, B1} around 11 and R = {D0, D1, D2} around 1002, in this order
// because they hold one, two and three classes. Two models:
//   A0: both models are empty, the first takes it.          B0: only model 1 lacks class 0.
//   B1: separated from P in model 0 by 2 * 89^2, from its own cluster in model 1 by 0: model 0.
//   D0: nobody lacks class 0; model 1 has fewer classes.    D1: only model 1 lacks class 1.
//   D2: model 0: (15842 + 1627208 + 1964162) / 3; model 1, whose class 0 has the mean 506.5 of Q and R:
//       (491040.5 + 491040.5 + 0) / 3. Model 0.
TEST(FedtmosTest, RegroupingByHand) {
  const std::vector<State> uploads = {
      client({flat_bank(0, 10, 100)}), client({flat_bank(0, 5, 20), flat_bank(1, 5, 24)}),
      client({flat_bank(0, 10, 3000), flat_bank(1, 10, 3006), flat_bank(2, 10, 3012)})};
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const auto method = hand_made::method_of(unscaled(2, 3), hand_made::images(kWidth, kClasses), seed);
    const auto model = hand_made::fuse(*method->make_server(), uploads);
    ASSERT_EQ(model->members().size(), 2u);
    EXPECT_THAT(weights_of(model->members()[0], 0), ElementsAre(100, -100));
    EXPECT_THAT(weights_of(model->members()[0], 1), ElementsAre(12, -12));
    EXPECT_THAT(weights_of(model->members()[0], 2), ElementsAre(1004, -1004));
    EXPECT_THAT(weights_of(model->members()[1], 0), ElementsAre((10 + 1000) / 2, -(10 + 1000) / 2));
    EXPECT_THAT(weights_of(model->members()[1], 1), ElementsAre(1002, -1002));
    EXPECT_THAT(weights_of(model->members()[1], 2), ElementsAre(0, 0));
  }
}

// Four clusters of one class each, two models: P = {A0} with 4 samples, Q = {B0} with 9, R = {C1} and
// S = {D1} with 5 each. The most samples first: Q opens model 0, whatever numbers k-means gives; then R and
// S, the two ties, and P goes last, to the model that still lacks class 0.
TEST(FedtmosTest, AmongEqualClustersTheMostSamplesComeFirst) {
  const std::vector<State> uploads = {client({flat_bank(0, 4, 100)}), client({flat_bank(0, 9, 500)}),
                                      client({flat_bank(1, 5, 2000)}), client({flat_bank(1, 5, 9000)})};
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const auto method = hand_made::method_of(unscaled(2, 4), hand_made::images(kWidth, kClasses), seed);
    const auto model = hand_made::fuse(*method->make_server(), uploads);
    ASSERT_EQ(model->members().size(), 2u);
    EXPECT_THAT(weights_of(model->members()[0], 0), ElementsAre(500, -500));
    EXPECT_THAT(weights_of(model->members()[1], 0), ElementsAre(100, -100));
  }
}

// P = {A0} and Q = {B0, C0, B1}: at C0's turn both models hold class 0 and as many clusters; the lower
// index wins. B1 then goes where class 0 is not Q alone: model 0.
TEST(FedtmosTest, EqualModelsTheFirstWins) {
  const auto model = fuse(
      unscaled(2, 2), {client({flat_bank(0, 10, 100)}), client({flat_bank(0, 5, 20), flat_bank(1, 5, 24)}),
                       client({flat_bank(0, 5, 14)})});
  ASSERT_EQ(model->members().size(), 2u);
  EXPECT_THAT(weights_of(model->members()[0], 0), ElementsAre((100 + 14) / 2, -(100 + 14) / 2));
  EXPECT_THAT(weights_of(model->members()[0], 1), ElementsAre(12, -12));
  EXPECT_THAT(weights_of(model->members()[1], 0), ElementsAre(10, -10));
  EXPECT_THAT(weights_of(model->members()[1], 1), ElementsAre(0, 0));
}

// Three holders of class 0 in one model: the mean of 10, 20 and 25, rounded.
std::vector<State> three_holders() {
  const auto holder = [](uint32_t samples, int32_t weight, size_t literal) {
    return client({{.label = 0,
                    .samples = samples,
                    .weights = {weight, weight},
                    .clauses = {{literal}, {literal + 1}}}});
  };
  return {holder(5, 10, 0), holder(9, 20, 2), holder(7, 25, 4)};
}

TEST(FedtmosTest, MeanWeightsAndTheLargestHoldersActions) {
  const auto model = fuse(unscaled(1), three_holders());
  ASSERT_EQ(model->members().size(), 1u);
  EXPECT_THAT(weights_of(model->members()[0], 0), ElementsAre(18, -18));
  EXPECT_THAT(literals_of(model->members()[0], 0, 0), ElementsAre(2));
  EXPECT_THAT(literals_of(model->members()[0], 0, 1), ElementsAre(3));
}

TEST(FedtmosTest, OrOfTheTopTwo) {
  const auto model =
      fuse(recipe("actions = \"or2\"\ngini_threshold = 1.0\nserver_models = 1\n"), three_holders());
  EXPECT_THAT(weights_of(model->members()[0], 0), ElementsAre(18, -18));
  EXPECT_THAT(literals_of(model->members()[0], 0, 0), ElementsAre(2, 4));
  EXPECT_THAT(literals_of(model->members()[0], 0, 1), ElementsAre(3, 5));
}

// Class 1, which nobody holds, is below -3000, the least sum of the others, by a thousandth and one.
TEST(FedtmosTest, ScoresByHandAndAbsentClassesAreNeverPredicted) {
  const auto model =
      fuse(unscaled(1) + "normalise = \"fixed\"\n", {client({flat_bank(0, 1, 300), flat_bank(2, 3, 4000)})});
  ThreadPool pool(1);
  // Clause 0 wants pixel 0, clause 1 (against) pixel 1; class 2's 3000 stands, though it exceeds T.
  const Dataset data = hand_made::images(kWidth, kClasses, {{1, 0, 0}, {0, 1, 0}, {1, 1, 1}, {0, 0, 1}});
  const float absent = -3003 / kThreshold;
  EXPECT_THAT(model->scores(data, pool), ElementsAre(75 / kThreshold, absent, 3,    //
                                                     -75 / kThreshold, absent, -3,  //
                                                     0, absent, 0, 0, absent, 0));
}

TEST(FedtmosTest, NormaliseSetsTheScale) {
  const auto fixed = fuse(unscaled(1) + "normalise = \"fixed\"\n", three_holders());
  EXPECT_EQ(fixed->members()[0].scale, kThreshold);
  EXPECT_EQ(fixed->members()[0].clamp, 0);
  const auto batch = fuse(recipe("normalise = \"batch\"\nserver_models = 1\n"), three_holders());
  EXPECT_EQ(batch->members()[0].scale, 0);
  EXPECT_EQ(batch->members()[0].clamp, 1000);
}

Bank calibrated_bank(uint16_t label, uint32_t samples, int32_t weight, float positive, float negative) {
  Bank bank = flat_bank(label, samples, weight);
  bank.positive_mean = positive;
  bank.negative_mean = negative;
  return bank;
}

// A quarter is left of class 0's weights and so of its means, 50 and -150, three quarters of class 2's, 600
// and -300. The span is 900, and the model holds two of three classes.
TEST(FedtmosTest, TheSpanIsThatOfTheTrainingSamples) {
  const auto model = fuse(
      unscaled(1), {client({calibrated_bank(0, 1, 400, 200, -600), calibrated_bank(2, 3, 400, 800, -400)})});
  EXPECT_EQ(model->members()[0].scale, 900 * 3 / 2.0f);
  EXPECT_EQ(model->members()[0].clamp, 0);
}

// The second client is the larger holder: the mean weight, 60, is three quarters of its 80. One class of
// three.
TEST(FedtmosTest, TheSpanOfAveragedWeightsIsTheLargestHolders) {
  const auto model = fuse(unscaled(1), {client({calibrated_bank(0, 5, 40, 1000, -1000)}),
                                        client({calibrated_bank(0, 9, 80, 100, -20)})});
  EXPECT_EQ(model->members()[0].scale, (75 + 15) * 3.0f);
}

// A class that is not held has the sum 0, which is within the span. Means of 0 leave a span of 1.
TEST(FedtmosTest, TheSpanHoldsZeroAndIsAtLeastOne) {
  const auto scale = [](float positive, float negative) {
    return fuse(unscaled(1), {client({calibrated_bank(0, 1, 400, positive, negative)})})->members()[0].scale;
  };
  EXPECT_EQ(scale(300, 200), 300 * 3.0f);
  EXPECT_EQ(scale(-200, -300), 300 * 3.0f);
  EXPECT_EQ(scale(0, 0), 3.0f);
}

// Two models of the same classes, one of a client whose weights and sums are ten times the other's: each has
// the same say, where sums divided by T would leave the decision to the louder one.
TEST(FedtmosTest, ALoudModelDoesNotOutvoteTheOthers) {
  const auto banks = [](int32_t weight, size_t literal) {
    const auto bank = [&](uint16_t label, size_t own) {
      return Bank{.label = label,
                  .samples = 1,
                  .weights = {weight, weight},
                  .clauses = {{own}, {own + kWidth}},
                  .positive_mean = static_cast<float>(weight),
                  .negative_mean = static_cast<float>(-weight)};
    };
    return client({bank(0, literal), bank(1, literal)});
  };
  // Clause 0 wants a pixel, clause 1 (against) its absence: the clients look at different pixels.
  const auto model = fuse(unscaled(2, 2), {banks(2000, 0), banks(200, 1)});
  ASSERT_EQ(model->members().size(), 2u);
  ThreadPool pool(1);
  const Dataset data = hand_made::images(kWidth, kClasses, {{1, 0, 0}, {0, 1, 0}, {1, 1, 0}});
  const std::vector<float> scores = model->scores(data, pool);
  EXPECT_FLOAT_EQ(scores[0], 0);
  EXPECT_FLOAT_EQ(scores[kClasses], 0);
  EXPECT_FLOAT_EQ(scores[2 * kClasses], 2 * 0.5f * 2 / 3);
}

// One client claims that its sums hardly spread, so that dividing by the span blows its votes up, and the
// largest weights that can be sent. With its votes clipped the two others are heard.
TEST(FedtmosTest, ALiarIsOutvotedWhereVotesAreClipped) {
  const auto bank = [](uint16_t label, size_t literal, int32_t weight, float span) {
    return Bank{.label = label,
                .samples = 1,
                .weights = {weight, weight},
                .clauses = {{literal}, {(literal + kWidth) % kLiterals}},
                .positive_mean = span,
                .negative_mean = -span};
  };
  // Honest ones say 0 where pixel 0 is set and 1 where it is not; the liar the opposite.
  const State honest = client({bank(0, 0, 500, 500), bank(1, kWidth, 500, 500)});
  const State liar = client({bank(0, kWidth, 1 << 24, 0.001f), bank(1, 0, 1 << 24, 0.001f)});
  ThreadPool pool(1);
  const Dataset data = hand_made::images(kWidth, kClasses, {{1, 0, 0}, {0, 1, 0}});
  const auto said = [&](const std::string& more) {
    return predict(*fuse(unscaled(3, 6) + more, {honest, liar, honest}), data, pool);
  };
  EXPECT_THAT(said(""), ElementsAre(1, 0));
  EXPECT_THAT(said("[federation]\nmost_votes = 500\n"), ElementsAre(0, 1));
}

TEST(FedtmosTest, OrderOfArrivalDoesNotMatter) {
  std::vector<State> uploads;
  RandomStream random({3, "order"});
  for (int i = 0; i < 5; ++i) {
    std::vector<Bank> banks;
    for (uint16_t label = 0; label < kClasses; ++label) {
      if (random.below(3) == 0 && !banks.empty()) continue;
      banks.push_back({.label = label,
                       .samples = 1 + random.below(4),
                       .weights = {static_cast<int32_t>(20 + random.below(90)), 50},
                       .clauses = {{random.below(6)}, {random.below(6)}}});
    }
    uploads.push_back(client(banks));
  }
  std::vector<uint32_t> order = {0, 1, 2, 3, 4};
  std::string first;
  for (int permutation = 0; permutation < 10; ++permutation) {
    const auto server = server_of(unscaled(2, 4));
    for (const uint32_t i : order) server->accept(i, uploads[i]);
    server->finish_round(1);
    if (first.empty()) first = server->model()->state().sha256();
    EXPECT_EQ(server->model()->state().sha256(), first);
    random.shuffle(std::span(order));
  }
}

TEST(FedtmosTest, IdenticalClientsAreAFixedPointUpToScaling) {
  const State upload = client({{.label = 0, .samples = 2, .weights = {40, 7}, .clauses = {{0, 4}, {1}}},
                               {.label = 2, .samples = 2, .weights = {100, 31}, .clauses = {{2}, {3, 5}}}});
  for (const char* actions : {"best", "or2"}) {
    const auto model =
        fuse(recipe("gini_threshold = 1.0\nserver_models = 1\nactions = \"" + std::string(actions) + "\"\n"),
             {upload, upload, upload});
    const TsetlinMember& member = model->members()[0];
    EXPECT_THAT(weights_of(member, 0), ElementsAre(20, -3));
    EXPECT_THAT(weights_of(member, 1), ElementsAre(0, 0));
    EXPECT_THAT(weights_of(member, 2), ElementsAre(50, -15));
    EXPECT_THAT(literals_of(member, 0, 0), ElementsAre(0, 4));
    EXPECT_THAT(literals_of(member, 0, 1), ElementsAre(1));
    EXPECT_THAT(literals_of(member, 2, 0), ElementsAre(2));
    EXPECT_THAT(literals_of(member, 2, 1), ElementsAre(3, 5));
  }
}

// At most the asked number of models, and none without classes.
TEST(FedtmosTest, NoMoreModelsThanVectorsOfAClass) {
  EXPECT_EQ(fuse(unscaled(7), three_holders())->members().size(), 3u);
  EXPECT_EQ(fuse(unscaled(2), three_holders())->members().size(), 2u);
}

// Class 0 has three vectors: three models, and no vector shares its place. Averages never come into it.
TEST(FedtmosTest, AutoModelsHoldEveryVectorOnItsOwn) {
  const State small = client({flat_bank(0, 5, 400), flat_bank(1, 5, 600)});
  for (const char* clusters : {"1", "2", "\"auto\""}) {
    const auto model = fuse(
        recipe("gini_threshold = 1.0\nserver_models = \"auto\"\nclusters = " + std::string(clusters) + "\n"),
        {client({flat_bank(0, 5, 100)}), client({flat_bank(0, 5, 50)}), small});
    std::vector<int32_t> weights;
    for (const TsetlinMember& member : model->members()) weights.push_back(weights_of(member, 0)[0]);
    EXPECT_THAT(weights, testing::UnorderedElementsAre(100, 50, 200));
  }
}

// Four vectors: two clusters, around 10 and 1000, as if two had been asked for.
TEST(FedtmosTest, AutoClustersAreHalfTheVectors) {
  const std::vector<State> uploads = {client({flat_bank(0, 10, 20), flat_bank(1, 10, 22)}),
                                      client({flat_bank(0, 10, 2000), flat_bank(1, 10, 2020)})};
  const auto with = [&](const char* clusters) {
    return fuse(recipe("gini_threshold = 1.0\nserver_models = 1\nclusters = " + std::string(clusters) + "\n"),
                uploads);
  };
  EXPECT_EQ(with("\"auto\"")->state(), with("2")->state());
}

TEST(FedtmosTest, SaveAndRestore) {
  const auto server = server_of(unscaled(2));
  const auto model = hand_made::fuse(*server, three_holders());
  const auto restored = server_of(unscaled(2));
  restored->restore(decode(encode(server->save()), "checkpoint"));
  EXPECT_EQ(restored->model()->state(), model->state());
  EXPECT_EQ(restored->notes(), server->notes());
  EXPECT_FALSE(server->notes().empty());
}

TEST(FedtmosTest, BadSettings) {
  const auto error = [](const std::string& method) { return error_text([&] { server_of(recipe(method)); }); };
  EXPECT_THAT(error("actions = \"both\"\n"), HasSubstr("method.actions"));
  EXPECT_THAT(error("gini_threshold = 1.5\n"), HasSubstr("method.gini_threshold"));
  EXPECT_THAT(error("server_models = 0\n"), HasSubstr("method.server_models"));
  EXPECT_THAT(error("server_models = 1.5\n"), HasSubstr("expected whole numbers, or \"auto\""));
  EXPECT_THAT(error("server_models = \"many\"\n"), HasSubstr("method.server_models"));
  EXPECT_THAT(error("clusters = 0\n"), HasSubstr("method.clusters"));
  EXPECT_THAT(error("clusters = \"many\"\n"), HasSubstr("method.clusters"));
}

}  // namespace
}  // namespace bitfed
