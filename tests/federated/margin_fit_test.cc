#include "bitfed/federated/tsetlin/margin_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/base/error_text.h"
#include "tests/federated/hand_made.h"

namespace bitfed {
namespace {

using hand_made::Bank;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::SizeIs;

// A client that holds one class, whose samples have all other classes as their rivals, equally often.
Margins margins_of(uint16_t label, uint32_t samples, const std::vector<float>& means,
                   const std::vector<float>& deviations) {
  std::vector<float> shares(means.size(), 1 / static_cast<float>(means.size() - 1));
  shares[label] = 0;
  return {{{label}, {samples}}, shares, means, deviations};
}

// What the offsets minimise, by the definition.
double shortfall(const std::vector<Margins>& clients, const std::vector<double>& offsets) {
  double sum = 0;
  for (const double offset : offsets) sum += 50 * offset * offset;
  for (const Margins& client : clients) {
    const size_t own = client.counts.classes[0];
    const double known = client.counts.samples[0];
    for (size_t other = 0; other < offsets.size(); ++other) {
      const double samples = known * known / (known + 1000) * static_cast<double>(client.shares[other]);
      const double margin = client.means[other] + offsets[own] - offsets[other];
      sum += samples * (std::hypot(client.deviations[other] / 2, margin) - margin);
    }
  }
  return sum;
}

std::vector<double> fitted(const std::vector<Margins>& clients, size_t classes) {
  MarginFit fit(classes);
  for (uint32_t client = 0; client < clients.size(); ++client) fit.accept(client, clients[client]);
  return fit.offsets();
}

// With as many samples and the same deviation the margins become equal: (0.2 + 1) / 2.
TEST(MarginFitTest, TwoClassesByHand) {
  const std::vector<double> offsets =
      fitted({margins_of(0, 1000000, {0, 0.2f}, {0, 0.5f}), margins_of(1, 1000000, {1, 0}, {0.5f, 0})}, 2);
  EXPECT_NEAR(offsets[0], 0.2, 1e-3);
  EXPECT_NEAR(offsets[1], -0.2, 1e-3);
}

// With few samples they stay near 0. 100 samples count as 100^2 / 1,100 = 9.1. At 0 the slope in the first
// offset is 9.1 (0.2 / 0.32 - 1) - 9.1 (1 / 1.03 - 1) = -3.15, and 100 for each unit of the offset outweighs
// it soon.
TEST(MarginFitTest, FewSamplesHardlyCount) {
  const std::vector<double> offsets =
      fitted({margins_of(0, 100, {0, 0.2f}, {0, 0.5f}), margins_of(1, 100, {1, 0}, {0.5f, 0})}, 2);
  EXPECT_GT(offsets[0], 0.02);
  EXPECT_LT(offsets[0], 0.0315);
  EXPECT_NEAR(offsets[1], -offsets[0], 1e-4);
}

// The function is convex: where no single offset can be changed for the better, it has its minimum.
TEST(MarginFitTest, TheMinimumOfTheDefinition) {
  const std::vector<Margins> clients = {margins_of(0, 900, {0, 0.1f, 0.9f}, {0, 0.4f, 0.3f}),
                                        margins_of(1, 300, {0.8f, 0, -0.2f}, {0.2f, 0, 0.6f}),
                                        margins_of(2, 500, {0.3f, 0.7f, 0}, {0.5f, 0.5f, 0}),
                                        margins_of(1, 200, {-0.4f, 0, 0.5f}, {0.9f, 0, 0.1f})};
  const std::vector<double> offsets = fitted(clients, 3);
  const double least = shortfall(clients, offsets);
  EXPECT_LT(least, shortfall(clients, {0, 0, 0}) - 1);
  for (size_t label = 0; label < 3; ++label) {
    for (const double step : {-0.003, 0.003}) {
      std::vector<double> other = offsets;
      other[label] += step;
      EXPECT_LT(least, shortfall(clients, other)) << label;
    }
  }
}

// Class 1 is nobody's: what is said of it is not read.
TEST(MarginFitTest, AClassThatNobodyHolds) {
  const auto offsets = [](float absent) {
    return fitted({margins_of(0, 500, {0, absent, 0.1f}, {0, absent, 0.5f}),
                   margins_of(2, 500, {0.9f, absent, 0}, {0.5f, absent, 0})},
                  3);
  };
  EXPECT_EQ(offsets(0)[1], 0);
  EXPECT_EQ(offsets(0), offsets(7));
  EXPECT_GT(offsets(0)[0], 0.1);
}

// One sample and no deviation; numbers as large as there are; nobody at all.
TEST(MarginFitTest, OffsetsAreFinite) {
  const float most = std::numeric_limits<float>::max();
  for (const double offset : fitted({margins_of(0, 1, {0, 0}, {0, 0})}, 2))
    EXPECT_TRUE(std::isfinite(offset));
  const std::vector<double> offsets =
      fitted({margins_of(0, 1, {0, -most}, {0, most}), margins_of(1, UINT32_MAX, {-most, 0}, {0, 0})}, 2);
  for (const double offset : offsets) EXPECT_TRUE(std::isfinite(offset));
  EXPECT_THAT(fitted({}, 2), Each(0));
}

// Two clients of 300 samples and one that claims as many as can be said: it counts as 3,000, and its margins
// pull no further than those of such a client.
TEST(MarginFitTest, AClientThatClaimsMoreThanAllOthers) {
  const float far = 1e30f;
  const auto with = [&](uint32_t claimed, float margin) {
    return fitted({margins_of(0, 300, {0, 0.5f}, {0, 0.5f}), margins_of(1, 300, {0.5f, 0}, {0.5f, 0}),
                   margins_of(1, claimed, {margin, 0}, {0.5f, 0})},
                  2);
  };
  EXPECT_EQ(with(UINT32_MAX, -far), with(3000, -far));
  EXPECT_NE(with(3000, -1), with(1000, -1));
  // Each step of an offset has 100 of the prior against 2 * 3000.
  EXPECT_LT(std::abs(with(UINT32_MAX, -far)[0]), 60);
}

// A margin of 0 on average is below 0 for half of the samples, one of a deviation for 15.87 %. The first
// client counts three times, and the third, whose samples are all wrong, has too few to be named.
TEST(MarginFitTest, DisagreementByHand) {
  const auto disagreement = [](const std::vector<Margins>& clients, const std::vector<double>& offsets) {
    MarginFit fit(2);
    for (uint32_t client = 0; client < clients.size(); ++client) fit.accept(client, clients[client]);
    return fit.disagreement(offsets);
  };
  const std::vector<Margins> clients = {margins_of(0, 300, {0, 0.5f}, {0, 0.5f}),
                                        margins_of(1, 100, {0, 0}, {0.5f, 0}),
                                        margins_of(1, 20, {-1, 0}, {0, 0})};
  const Disagreement plain = disagreement(clients, {0, 0});
  EXPECT_NEAR(plain.wrong, (300 * 0.1587 + 100 * 0.5 + 20) / 420, 1e-4);
  EXPECT_EQ(plain.clients, 0u);
  const Disagreement moved = disagreement(clients, {0.25, -0.25});  // margins of class 1 are half lower
  EXPECT_NEAR(moved.wrong, (300 * 0.0228 + 100 * 0.8413 + 20) / 420, 1e-4);
  EXPECT_EQ(moved.clients, 1u);
  EXPECT_EQ(disagreement({}, {0, 0}).wrong, 0);
}

// A score of 10 / 20 for class 0 where the first pixel is set, of 20 / 20 for class 1 where the second is, of
// 4 / 20 for class 2 where the third is.
constexpr const char* kRecipe =
    "rounds = 2\n[model]\nname = \"tm\"\nclauses = 2\nthreshold = 20\n[method]\nname = \"fedtm-largest\"\n"
    "server_models = 1\n";

std::unique_ptr<ServerHalf> fused_server(const Method& method) {
  auto server = method.make_server();
  hand_made::fuse(*server, {hand_made::upload_of({{.label = 0, .weights = {10, 1}, .clauses = {{0}, {}}},
                                                  {.label = 1, .weights = {20, 1}, .clauses = {{1}, {}}},
                                                  {.label = 2, .weights = {4, 1}, .clauses = {{2}, {}}}},
                                                 6)});
  return server;
}

Dataset four_samples() {
  Dataset samples = hand_made::images(3, 3, {{1, 0, 0}, {0, 1, 0}, {1, 1, 0}, {0, 0, 1}});
  samples.labels = {0, 1, 0, 0};
  return samples;
}

State reply(const Method& method, const ServerHalf& server) {
  const ClientContext context{RandomStream({0, "client", 2, 0}), {}, {}, {}};
  return method.make_client()->train(decode(encode(server.broadcast(2)), "broadcast"), four_samples(),
                                     context);
}

// Class 0: scores (0.5, 0, 0) and (0.5, 1, 0) with the rival 1, and (0, 0, 0.2) with the rival 2. Class 1:
// (0, 1, 0) with the rival 0.
TEST(MarginFitTest, TheMessageOfAClientByHand) {
  const auto method = hand_made::method_of(kRecipe, hand_made::images(3, 3));
  const State message = reply(*method, *fused_server(*method));
  EXPECT_THAT(message.values<uint16_t>("classes", {2}), ElementsAre(0, 1));
  EXPECT_THAT(message.values<uint32_t>("samples", {2}), ElementsAre(3, 1));
  EXPECT_THAT(message.values<float>("rivals", {2, 3}),
              ElementsAre(0, FloatEq(2 / 3.0f), FloatEq(1 / 3.0f), 1, 0, 0));
  EXPECT_THAT(message.values<float>("margins", {2, 3}), ElementsAre(0, 0, FloatEq(-0.2f), 1, 0, 0));
  EXPECT_THAT(message.values<float>("deviations", {2, 3}), ElementsAre(0, 0.5f, 0, 0, 0, 0));
  EXPECT_EQ(message.tensors().size(), 5u);
}

// The offsets, times T and rounded, are added to what class sums begin with. A server that was stored after
// the first round goes on with the second.
TEST(MarginFitTest, TheSecondRoundAddsOffsets) {
  const auto method = hand_made::method_of(kRecipe, hand_made::images(3, 3));
  const auto server = method->make_server();
  server->restore(fused_server(*method)->save());
  State message;
  message.add("classes", {2}, std::vector<uint16_t>{0, 1});
  message.add("samples", {2}, std::vector<uint32_t>{1000000, 1000000});
  message.add("rivals", {2, 3}, std::vector<float>{0, 1, 0, 1, 0, 0});
  message.add("margins", {2, 3}, std::vector<float>{0, 0.2f, 0, 1, 0, 0});
  message.add("deviations", {2, 3}, std::vector<float>{0, 0.5f, 0, 0.5f, 0, 0});
  server->accept(0, message);
  server->finish_round(2);
  const auto model = server->model();
  const TsetlinMember& member = dynamic_cast<const TsetlinModel&>(*model).members().front();
  EXPECT_THAT(member.bias, ElementsAre(4, -4, 0));
  EXPECT_THAT(hand_made::weights_of(member, 0), ElementsAre(10, -1));
}

// What a second exchange says of clients whose labels are each other's, and not of those that agree.
TEST(MarginFitTest, ClientsThatDisagreeAreNoted) {
  const auto method = hand_made::method_of(kRecipe, hand_made::images(3, 3));
  const auto notes = [&](float margin) {
    const auto server = fused_server(*method);
    for (const uint32_t client : {0u, 1u}) {
      State message;
      message.add("classes", {2}, std::vector<uint16_t>{0, 1});
      message.add("samples", {2}, std::vector<uint32_t>{500, 500});
      message.add("rivals", {2, 3}, std::vector<float>{0, 1, 0, 1, 0, 0});
      const float own = client == 0 ? 1 : margin;
      message.add("margins", {2, 3}, std::vector<float>{0, own, 0, own, 0, 0});
      message.add("deviations", {2, 3}, std::vector<float>(6));
      server->accept(client, message);
    }
    server->finish_round(2);
    return server->notes();
  };
  EXPECT_THAT(notes(-1),
              IsSupersetOf({HasSubstr("do not trust this model: it takes about 50 % of the clients'"),
                            HasSubstr("1 of 2 clients: the model takes more than half")}));
  EXPECT_THAT(notes(1), Not(Contains(HasSubstr("own training samples for another class"))));
}

// The first client knows half of two classes, the second three quarters of the third: (200 * 1 + 300 * 0.75)
// / (3 * 500). The bytes are those of the second exchange.
TEST(MarginFitTest, ASecondExchangeIsOfferedWhereClientsKnowLittle) {
  const auto offers = [](const std::string& recipe, const std::vector<std::vector<Bank>>& clients) {
    const auto method = hand_made::method_of(recipe, hand_made::images(3, 3));
    const auto server = method->make_server();
    std::vector<State> uploads;
    for (const std::vector<Bank>& banks : clients) uploads.push_back(hand_made::upload_of(banks, 6));
    hand_made::fuse(*server, uploads);
    std::vector<std::string> found;
    for (const std::string& note : server->notes()) {
      if (note.find("second exchange") != std::string::npos) found.push_back(note);
    }
    return found;
  };
  const auto bank = [](uint16_t label, uint32_t samples) {
    return Bank{.label = label, .samples = samples, .weights = {10, 1}, .clauses = {{label}, {}}};
  };
  const std::string one = "[model]\nname = \"tm\"\nclauses = 2\nthreshold = 20\n[method]\nname = \"";
  const std::vector<std::vector<Bank>> little = {{bank(0, 100), bank(1, 100)}, {bank(2, 300)}};

  const auto method =
      hand_made::method_of("rounds = 2\n" + one + "fedtm-largest\"\n", hand_made::images(3, 3));
  const auto server = method->make_server();
  hand_made::fuse(*server, {hand_made::upload_of(little[0], 6), hand_made::upload_of(little[1], 6)});
  Dataset first = hand_made::images(3, 3, {{1, 0, 0}, {0, 1, 0}});
  first.labels = {0, 1};
  Dataset second = hand_made::images(3, 3, {{0, 0, 1}});
  second.labels = {2};
  const ClientContext context{RandomStream({0, "client", 2, 0}), {}, {}, {}};
  const auto client = method->make_client();
  const State broadcast = server->broadcast(2);
  const size_t replies = (encode(client->train(broadcast, first, context)).size() +
                          encode(client->train(broadcast, second, context)).size()) /
                         2;
  const auto kilobytes = [](size_t bytes) {
    return fmt::format("{:.1f} KB", static_cast<double>(bytes) / 1000);
  };
  EXPECT_THAT(offers(one + "fedtm-largest\"\n", little),
              ElementsAre(AllOf(HasSubstr("clients know 28 % of the classes"), HasSubstr("rounds = 2"),
                                HasSubstr("sends each client " + kilobytes(encode(broadcast).size())),
                                HasSubstr("takes back " + kilobytes(replies)))));
  for (const char* name : {"fedtm-bank", "fedtmos", "fedtmos-ensemble"})
    EXPECT_THAT(offers(one + name + "\"\n", little), SizeIs(1)) << name;

  EXPECT_THAT(offers("rounds = 2\n" + one + "fedtm-bank\"\n", little), IsEmpty());
  EXPECT_THAT(offers(one + "fedtmos\"\nnormalise = \"batch\"\n", little), IsEmpty());
  EXPECT_THAT(offers(one + "fedtm-bank\"\n", {little[0]}), IsEmpty()) << "one client";
  EXPECT_THAT(offers(one + "fedtm-bank\"\n", {little[0], {bank(2, 29)}}), IsEmpty()) << "too few samples";
  const std::vector<Bank> all = {bank(0, 100), bank(1, 100), bank(2, 100)};
  EXPECT_THAT(offers(one + "fedtm-bank\"\n", {all, all}), IsEmpty()) << "half of the classes is not little";
}

TEST(MarginFitTest, RefusesMessagesThatDoNotFit) {
  const auto method = hand_made::method_of(kRecipe, hand_made::images(3, 3));
  const auto server = fused_server(*method);
  const auto refusal = [&](const std::string& tensor, float value) {
    State changed;
    const State message = reply(*method, *server);
    for (const Tensor& each : message.tensors()) {
      if (each.name != tensor) changed.add(each);
    }
    changed.add(tensor, {2, 3}, std::vector<float>{0, value, 0, 0, 0, 0});
    return error_text([&] { server->accept(0, changed); });
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float share : {nan, -1.0f, 2.0f})
    EXPECT_THAT(refusal("rivals", share),
                HasSubstr("tensor 'rivals': expected parts of each class's samples"));
  EXPECT_THAT(refusal("margins", nan), HasSubstr("tensor 'margins': expected finite values"));
  EXPECT_THAT(refusal("deviations", nan),
              HasSubstr("tensor 'deviations': expected finite values of 0 or more"));
  EXPECT_THAT(refusal("deviations", -1),
              HasSubstr("tensor 'deviations': expected finite values of 0 or more"));
  EXPECT_THAT(refusal("extra", 0), HasSubstr("found 6 tensors, expected 5"));
}

// What a client sends instead of its margins: each is refused in one line, and the fit is that of the others.
TEST(MarginFitTest, ARefusedClientIsALostOne) {
  const auto method = hand_made::method_of(kRecipe, hand_made::images(3, 3));
  const auto message = [](uint32_t samples, const std::vector<uint64_t>& shape, std::vector<float> margins) {
    State state;
    state.add("classes", {2}, std::vector<uint16_t>{0, 1});
    state.add("samples", {2}, std::vector<uint32_t>{samples, samples});
    state.add("rivals", {2, 3}, std::vector<float>{0, 1, 0, 1, 0, 0});
    state.add("margins", {shape.begin(), shape.end()}, std::move(margins));
    state.add("deviations", {2, 3}, std::vector<float>{0, 0.5f, 0, 0.5f, 0, 0});
    return state;
  };
  const auto biases = [&](const std::vector<State>& hostile) {
    const auto server = fused_server(*method);
    server->accept(0, message(500, {2, 3}, {0, 0.2f, 0, 1, 0, 0}));
    for (uint32_t client = 0; client < hostile.size(); ++client) {
      const std::string text = error_text([&] { server->accept(1 + client, hostile[client]); });
      EXPECT_THAT(text, AllOf(HasSubstr("tensor"), Not(HasSubstr("\n"))));
    }
    server->finish_round(2);
    return dynamic_cast<const TsetlinModel&>(*server->model()).members().front().bias;
  };
  const float infinite = std::numeric_limits<float>::infinity();
  const std::vector<float> six(6, 0.5f);
  State upload;  // of the first exchange
  upload.add("classes", {1}, std::vector<uint16_t>{0});
  upload.add("samples", {1}, std::vector<uint32_t>{1});
  EXPECT_EQ(biases({message(500, {2, 3}, {0, infinite, 0, 0, 0, 0}),
                    message(500, {2, 3}, {0, std::nanf(""), 0, 0, 0, 0}), message(0, {2, 3}, six),
                    message(500, {3, 2}, six), message(500, {2, 2}, {0, 0, 0, 0}), message(500, {6}, six),
                    upload, State()}),
            biases({}));
}

TEST(MarginFitTest, NotWhereScoresDependOnWhatIsPredictedTogether) {
  const std::string recipe =
      "rounds = 2\n[model]\nname = \"tm\"\n[method]\nname = \"fedtmos\"\nnormalise = \"batch\"\n";
  EXPECT_THAT(error_text([&] { hand_made::method_of(recipe, hand_made::images(2, 2)); }),
              HasSubstr("rounds: found 2, expected 1 with method.normalise = \"batch\""));
}

}  // namespace
}  // namespace bitfed
