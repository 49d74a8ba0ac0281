#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "bitfed/federated/tsetlin/automata_federation.h"
#include "tests/base/error_text.h"
#include "tests/federated/hand_made.h"

namespace bitfed {
namespace {

using hand_made::literals_of;
using hand_made::weights_of;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Three classes, two clauses each, six literals.
constexpr const char* kRecipe =
    "[model]\nname = \"tm\"\nclauses = 2\nthreshold = 20\n[method]\nname = \"fedtm\"\n[client]\nepochs = 3\n";

std::unique_ptr<Method> method() {
  return hand_made::method_of(kRecipe, hand_made::images(3, 3));
}

// An upload of some classes: all automata of a class in one state, both weights the same.
struct Said {
  uint16_t label;
  uint32_t samples;  // 0: the client does not hold it
  uint8_t state;
  int32_t weight;
};

State upload_of(const std::vector<Said>& classes, const Automata& base) {
  ClassCounts counts;
  Automata automata;
  for (const Said& said : classes) {
    if (said.samples > 0) {
      counts.classes.push_back(said.label);
      counts.samples.push_back(said.samples);
    }
    automata.states.insert(automata.states.end(), 12, said.state);
    automata.weights.insert(automata.weights.end(), 2, said.weight);
  }
  State upload;
  add_counts(counts, &upload);
  add_levels(automata, base, "0.states", &upload);
  return upload;
}

// The first round: classes 0 and 1 of one client, at 200 and 60.
std::unique_ptr<ServerHalf> begun_server() {
  auto server = method()->make_server();
  server->accept(0, upload_of({{0, 5, 200, 10}, {1, 5, 60, 20}}, untrained_automata(4, 6)));
  server->finish_round(1);
  return server;
}

TEST(FedtmStatesTest, TheFirstClausesAreOneHolders) {
  const auto server = begun_server();
  const CommonMachine common = CommonMachine::read(
      server->broadcast(2), read_tsetlin_recipe({Config::parse(kRecipe, "recipe"), hand_made::images(3, 3)}));
  EXPECT_THAT(common.known, ElementsAre(0, 1));
  EXPECT_EQ(common.specialists[0].states[0], 200);   // the middle of 192 to 207
  EXPECT_EQ(common.specialists[0].states[12], 56);   // of 48 to 63
  EXPECT_EQ(common.specialists[0].states[24], 127);  // untrained
  EXPECT_THAT(common.specialists[0].weights, ElementsAre(10, 10, 20, 20, 1, 1));
}

// Shares 10 * 6 + 3 * 2 = 66 and 10 * 0 + 3 * 4 = 12 in class 0: (66 * 136 + 12 * 40) / 78 = 121.2 and
// (66 * 30 + 12 * 4) / 78 = 26; in class 1: 10 * 2 + 3 * 6 = 38 and 10 * 4 = 40: (38 * 248 + 40 * 8) / 78 =
// 124.9 and (38 * 9 + 40 * 11) / 78 = 10.03.
TEST(FedtmStatesTest, MeanByShares) {
  const auto server = begun_server();
  Automata base;
  for (const uint8_t state : {200, 56}) base.states.insert(base.states.end(), 12, state);
  base.weights = {10, 10, 20, 20};
  const State first = upload_of({{0, 6, 130, 30}, {1, 2, 255, 9}}, base);
  const State second = upload_of({{0, 0, 40, 4}, {1, 4, 0, 11}}, base);
  server->accept(0, first);
  server->accept(1, second);
  server->finish_round(2);
  const auto other = begun_server();
  other->accept(1, second);
  other->accept(0, first);
  other->finish_round(2);
  EXPECT_EQ(server->save(), other->save());
  const CommonMachine common = CommonMachine::read(
      server->broadcast(3), read_tsetlin_recipe({Config::parse(kRecipe, "recipe"), hand_made::images(3, 3)}));
  EXPECT_EQ(common.specialists[0].states[0], 121);
  EXPECT_EQ(common.specialists[0].states[12], 125);
  EXPECT_THAT(common.specialists[0].weights, ElementsAre(26, 26, 10, 10, 1, 1));
}

// Whatever clients claim: sums do not wrap, and every client can read what is broadcast. A share is 2^36 at
// most, and a weight 2^24: sixteen clients exceed 64 bits.
TEST(FedtmStatesTest, TheLargestClaimsDoNotWrap) {
  const Dataset prototype = hand_made::images(3, 10);
  const auto server = hand_made::method_of(kRecipe, prototype)->make_server();
  std::vector<Said> all;
  for (uint16_t label = 0; label < 10; ++label) all.push_back({label, UINT32_MAX, 200, kMaximumWeight});
  server->accept(0, upload_of(all, untrained_automata(20, 6)));
  server->finish_round(1);
  const TsetlinRecipe recipe = read_tsetlin_recipe({Config::parse(kRecipe, "recipe"), prototype});
  const Automata base = CommonMachine::read(server->broadcast(2), recipe).specialists[0];
  for (uint32_t client = 0; client < 20; ++client) server->accept(client, upload_of(all, base));
  server->finish_round(2);
  const auto restored = hand_made::method_of(kRecipe, prototype)->make_server();
  restored->restore(decode(encode(server->save()), "checkpoint"));
  const CommonMachine common = CommonMachine::read(decode(encode(server->broadcast(3)), "broadcast"), recipe);
  EXPECT_THAT(common.specialists[0].weights, Each(kMaximumWeight));
  EXPECT_THAT(common.specialists[0].states, Each(200));
}

// A share is at most 2^36, so that the states' sums do not wrap whatever the number of classes: 2^36 beside
// 10 (2^32 - 1), of states 248 and 8, give 155.7.
TEST(FedtmStatesTest, AShareIsBounded) {
  const Dataset prototype = hand_made::images(3, 10);
  const auto server = hand_made::method_of(kRecipe, prototype)->make_server();
  server->accept(0, upload_of({{0, 5, 200, 10}}, untrained_automata(2, 6)));
  server->finish_round(1);
  const TsetlinRecipe recipe = read_tsetlin_recipe({Config::parse(kRecipe, "recipe"), prototype});
  std::vector<Said> all;
  for (uint16_t label = 0; label < 10; ++label) all.push_back({label, UINT32_MAX, 248, 10});
  server->accept(0, upload_of(all, CommonMachine::read(server->broadcast(2), recipe).specialists[0]));
  server->accept(1, upload_of({{0, UINT32_MAX, 8, 10}}, {std::vector<uint8_t>(12, 200), {10, 10}}));
  server->finish_round(2);
  EXPECT_EQ(CommonMachine::read(server->broadcast(3), recipe).specialists[0].states[0], 156);
}

// A machine without clauses may begin a run, and must not end it.
TEST(FedtmStatesTest, AnEmptyModelAtTheEndIsAFailure) {
  const auto server =
      hand_made::method_of("rounds = 2\n" + std::string(kRecipe), hand_made::images(3, 3))->make_server();
  const Automata base = untrained_automata(2, 6);
  const State upload = upload_of({{0, 5, 60, 10}}, base);
  server->accept(0, upload);
  server->finish_round(1);
  EXPECT_THAT(server->notes(), Contains(HasSubstr("do not trust this model: it has no clauses yet")));
  server->accept(0, upload_of({{0, 5, 60, 10}}, {std::vector<uint8_t>(12, 56), {10, 10}}));
  EXPECT_THAT(error_text([&] { server->finish_round(2); }), HasSubstr("empty model"));
}

// The most that any round had counts, and it is kept in checkpoints but not sent to clients.
TEST(FedtmStatesTest, FewSamplesAreNoted) {
  const auto server = method()->make_server();
  const TsetlinRecipe recipe =
      read_tsetlin_recipe({Config::parse(kRecipe, "recipe"), hand_made::images(3, 3)});
  const auto round = [&](uint32_t number, uint32_t samples) {
    const CommonMachine common = CommonMachine::read(server->broadcast(number), recipe);
    const Automata base = rows_of(common.specialists[0], {0}, 2, 6);
    server->accept(0, upload_of({{0, samples, 200, 10}}, base));
    server->finish_round(number);
  };
  round(1, 5);
  EXPECT_THAT(server->notes(),
              Contains(HasSubstr("class '0' has 5 samples at the clients of a round, at most")));
  const auto restored = method()->make_server();
  restored->restore(decode(encode(server->save()), "checkpoint"));
  EXPECT_EQ(restored->notes(), server->notes());
  EXPECT_EQ(restored->broadcast(2), server->broadcast(2));
  EXPECT_FALSE(server->broadcast(2).metadata.contains("most_samples"));
  State of_an_earlier_build = server->save();
  of_an_earlier_build.metadata.erase("most_samples");
  method()->make_server()->restore(of_an_earlier_build);
  for (const char* damaged : {"7", "[]", "[1,-2,3]", "[1,2,\"x\"]"}) {
    State changed = server->save();
    changed.metadata["most_samples"] = damaged;
    EXPECT_THAT(error_text([&] { method()->make_server()->restore(changed); }), HasSubstr("most_samples"));
  }
  round(2, 40);
  EXPECT_THAT(server->notes(), Not(Contains(HasSubstr("too few"))));
}

TEST(FedtmStatesTest, AHeldClassWithoutClausesIsNoted) {
  EXPECT_THAT(begun_server()->notes(),
              Contains("clients hold class '1', but it has no clauses: it is never predicted"));
}

TEST(FedtmStatesTest, AClassThatNobodyHoldsIsNeverPredicted) {
  const auto model = begun_server()->model();
  const auto& member = dynamic_cast<const TsetlinModel&>(*model).members()[0];
  EXPECT_EQ(member.clamp, 0);
  EXPECT_THAT(literals_of(member, 0, 0), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(weights_of(member, 0), ElementsAre(10, -10));
  EXPECT_LT(member.bias[2], -10);
  // Class 1 excludes every literal: it cannot fire either.
  EXPECT_LT(member.bias[1], -10);
}

// Clause j of one client has nothing to do with clause j of another: a pair is one client's, whoever comes
// first.
TEST(FedtmStatesTest, FirstClausesDoNotDependOnTheOrder) {
  std::vector<State> uploads;
  for (const uint8_t state : {140, 156, 172, 188})
    uploads.push_back(upload_of({{0, 5, state, state}}, untrained_automata(2, 6)));
  std::vector<uint32_t> order = {0, 1, 2, 3};
  std::optional<State> expected;
  do {
    const auto server = method()->make_server();
    for (const uint32_t client : order) server->accept(client, uploads[client]);
    server->finish_round(1);
    if (!expected) expected = server->save();
    ASSERT_EQ(server->save(), *expected);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(FedtmStatesTest, SaveAndRestore) {
  const auto server = begun_server();
  const auto restored = method()->make_server();
  restored->restore(decode(encode(server->save()), "checkpoint"));
  EXPECT_EQ(restored->broadcast(2), server->broadcast(2));
  EXPECT_EQ(restored->model()->state(), server->model()->state());
  EXPECT_EQ(restored->notes(), server->notes());
}

TEST(FedtmStatesTest, ARefusedUploadDoesNotCount) {
  const auto server = begun_server();
  const State before = server->save();
  // Of the classes 0 and 1, which the server knows, one is missing.
  const State missing = upload_of({{0, 5, 200, 10}}, untrained_automata(2, 6));
  EXPECT_THAT(error_text([&] { server->accept(0, missing); }), HasSubstr("'0.states'"));
  EXPECT_THAT(error_text([&] { server->accept(0, State()); }), HasSubstr("'classes'"));
  EXPECT_EQ(server->save(), before);
}

// The client's half and the server's fit each other, and a machine learns over the rounds: images whose first
// pixel is their class.
TEST(FedtmStatesTest, LearnsOverRounds) {
  Dataset images = hand_made::images(3, 3);
  for (uint32_t i = 0; i < 64; ++i) {
    const bool on = i % 2 == 0;
    for (const bool pixel : {on, i % 3 == 0, i % 5 == 0}) images.pixels.push_back(pixel ? 255 : 0);
    images.labels.push_back(on ? 1 : 0);
  }
  std::string text = kRecipe;
  text.replace(text.find("clauses = 2"), 11, "clauses = 10");
  const auto method = hand_made::method_of(text, subset(images, {}));
  const auto server = method->make_server();
  const auto client = method->make_client();
  for (uint32_t round = 1; round <= 3; ++round) {
    const State broadcast = decode(encode(server->broadcast(round)), "broadcast");
    for (uint32_t id = 0; id < 2; ++id) {
      const ClientContext context{RandomStream({id, "client"}).substream(round), {}, {}, {}};
      server->accept(id, decode(encode(client->train(broadcast, images, context)), "upload"));
    }
    server->finish_round(round);
  }
  ThreadPool pool(1);
  const std::vector<float> scores = server->model()->scores(images, pool);
  size_t right = 0;
  for (size_t i = 0; i < images.size(); ++i) {
    const auto first = scores.begin() + static_cast<std::ptrdiff_t>(3 * i);
    right += std::max_element(first, first + 3) - first == images.labels[i] ? 1 : 0;
  }
  EXPECT_GE(right, 60u);
}

// Automata below the boundary: no clause has a literal. The first class is nobody's.
TEST(FedtmStatesTest, AnEmptyModelPredictsNoClassThatNobodyHolds) {
  const auto server = method()->make_server();
  server->accept(0, upload_of({{1, 5, 60, 10}, {2, 5, 60, 20}}, untrained_automata(4, 6)));
  server->finish_round(1);
  ThreadPool pool(1);
  const Dataset data = hand_made::images(3, 3, hand_made::all_images(3));
  EXPECT_THAT(predict(*server->model(), data, pool), Each(1));
  EXPECT_THAT(server->notes(), Contains("no client holds class '0': it is never predicted"));
}

}  // namespace
}  // namespace bitfed
