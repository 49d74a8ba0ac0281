#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr const char* kRecipe =
    "[model]\nname = \"tm\"\nclauses = 2\nthreshold = 20\n[method]\nname = \"fedtm\"\nactions = \"or2\"\n";

std::unique_ptr<ServerHalf> make_server() {
  return hand_made::method_of(kRecipe, hand_made::images(3, 3))->make_server();
}

// Says of class 0 this and nothing of the others.
State says(uint32_t samples, int32_t weight, size_t literal, uint16_t label = 0) {
  return upload_of({{.label = label, .samples = samples, .weights = {weight, 1}, .clauses = {{literal}, {}}}},
                   6);
}

TsetlinModel model_of(const ServerHalf& server) {
  return dynamic_cast<const TsetlinModel&>(*server.model());
}

TEST(FedtmTest, MeanOfTheWeightsIsRoundedHalfUp) {
  struct Case {
    uint32_t samples_a;
    int32_t weight_a;
    uint32_t samples_b;
    int32_t weight_b;
    int32_t mean;
  };
  // (10 * 3 + 11) / 4 = 10.25, (10 + 11) / 2 = 10.5, (10 + 11 * 2) / 3 = 10.67, (10 * 2 + 11) / 3 = 10.33
  for (const Case& c : {Case{3, 10, 1, 11, 10}, Case{1, 10, 1, 11, 11}, Case{1, 10, 2, 11, 11},
                        Case{2, 10, 1, 11, 10}, Case{4'000'000'000, 1, 1, 1 << 24, 1}}) {
    const auto server = make_server();
    const auto model =
        hand_made::fuse(*server, {says(c.samples_a, c.weight_a, 0), says(c.samples_b, c.weight_b, 0)});
    EXPECT_THAT(weights_of(model->members()[0], 0), ElementsAre(c.mean, -1));
  }
}

TEST(FedtmTest, OrOfTheTwoLargestHolders) {
  const auto server = make_server();
  const auto model = hand_made::fuse(*server, {says(5, 1, 0), says(9, 1, 1), says(7, 1, 2), says(6, 1, 3)});
  EXPECT_THAT(literals_of(model->members()[0], 0, 0), ElementsAre(1, 2));
  EXPECT_THAT(literals_of(model->members()[0], 0, 1), IsEmpty());
}

std::unique_ptr<ServerHalf> server_with(const std::string& actions) {
  std::string text = kRecipe;
  text.replace(text.find("or2"), 3, actions);
  return hand_made::method_of(text, hand_made::images(3, 3))->make_server();
}

TEST(FedtmTest, BestIsTheLargestHolder) {
  const auto model = hand_made::fuse(*server_with("best"), {says(5, 1, 0), says(9, 7, 1), says(7, 1, 2)});
  EXPECT_THAT(literals_of(model->members()[0], 0, 0), ElementsAre(1));
  EXPECT_THAT(weights_of(model->members()[0], 0), ElementsAre(4, -1));  // (5 + 63 + 7) / 21 = 3.57
}

// More than half of the samples: 12 of 21 include literal 2, 9 of 21 literal 1.
TEST(FedtmTest, MajorityIsBySamples) {
  const auto model = hand_made::fuse(*server_with("majority"), {says(5, 1, 2), says(9, 1, 1), says(7, 1, 2)});
  EXPECT_THAT(literals_of(model->members()[0], 0, 0), ElementsAre(2));
  // Half is not a majority.
  const auto tied = hand_made::fuse(*server_with("majority"), {says(5, 1, 2), says(5, 1, 1)});
  EXPECT_THAT(literals_of(tied->members()[0], 0, 0), IsEmpty());
}

// Among equals the lower client, in whatever order they arrive.
TEST(FedtmTest, TiesAndTheOrderOfArrival) {
  const std::vector<State> uploads = {says(5, 10, 0), says(7, 20, 1), says(7, 35, 2), says(7, 40, 3),
                                      says(9, 50, 4)};
  std::vector<uint32_t> order = {0, 1, 2, 3, 4};
  do {
    const auto server = make_server();
    for (const uint32_t client : order) server->accept(client, uploads[client]);
    server->finish_round(1);
    const TsetlinModel model = model_of(*server);
    // (50 + 140 + 245 + 280 + 450) / 35 = 33.29
    ASSERT_THAT(weights_of(model.members()[0], 0), ElementsAre(33, -1));
    ASSERT_THAT(literals_of(model.members()[0], 0, 0), ElementsAre(1, 4));
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(FedtmTest, OneHolderIsTakenAsItIs) {
  const auto server = make_server();
  const auto model = hand_made::fuse(*server, {says(5, 17, 2)});
  EXPECT_THAT(weights_of(model->members()[0], 0), ElementsAre(17, -1));
  EXPECT_THAT(literals_of(model->members()[0], 0, 0), ElementsAre(2));
}

TEST(FedtmTest, AClassThatNobodyHeldStays) {
  const auto server = make_server();
  hand_made::fuse(*server, {says(5, 17, 2)});
  server->accept(0, says(3, 4, 5, /*label=*/1));
  server->finish_round(2);
  const TsetlinModel model = model_of(*server);
  EXPECT_THAT(weights_of(model.members()[0], 0), ElementsAre(17, -1));
  EXPECT_THAT(literals_of(model.members()[0], 0, 0), ElementsAre(2));
  EXPECT_THAT(weights_of(model.members()[0], 1), ElementsAre(4, -1));
  EXPECT_THAT(literals_of(model.members()[0], 1, 0), ElementsAre(5));
  // Never held: a machine's start, which is silent.
  EXPECT_THAT(weights_of(model.members()[0], 2), ElementsAre(1, -1));
  EXPECT_THAT(literals_of(model.members()[0], 2, 0), IsEmpty());
  // And never predicted: below -1, the least sum of the others.
  EXPECT_LT(model.members()[0].bias[2], -1);
  EXPECT_EQ(model.members()[0].bias[0], 0);
}

// Clients hold class 1 alone, and their clauses have no literals: class 0 is still nobody's.
TEST(FedtmTest, AnEmptyModelPredictsNoClassThatNobodyHolds) {
  for (const char* actions : {"or2", "best", "majority"}) {
    const auto server = server_with(actions);
    const State upload = upload_of({{.label = 1, .samples = 5, .weights = {3, 1}, .clauses = {{}, {}}}}, 6);
    const auto model = hand_made::fuse(*server, {upload});
    ThreadPool pool(1);
    EXPECT_THAT(predict(*model, hand_made::images(3, 3, hand_made::all_images(3)), pool), Each(1));
    EXPECT_THAT(server->notes(), Contains("no client holds class '0': it is never predicted"));
    EXPECT_THAT(server->notes(), Contains(HasSubstr("do not trust this model: it has no clauses yet")));
    // Also after a restart: the clauses alone do not tell who holds what.
    const auto restored = server_with(actions);
    restored->restore(decode(encode(server->save()), "checkpoint"));
    EXPECT_EQ(restored->model()->state(), model->state());
    EXPECT_EQ(restored->notes(), server->notes());
    restored->accept(0, upload);
    EXPECT_THAT(error_text([&] { restored->finish_round(10); }), HasSubstr("empty model"));
  }
}

// A class that clients hold and that no clause speaks for: of two clients one includes the literal, which is
// no majority.
TEST(FedtmTest, AHeldClassWithoutClausesIsNoted) {
  const auto server = server_with("majority");
  hand_made::fuse(*server, {says(5, 1, 2), says(5, 1, 1), says(5, 1, 1, 1)});
  EXPECT_THAT(server->notes(),
              UnorderedElementsAre("clients hold class '0', but it has no clauses: it is never predicted",
                                   "no client holds class '2': it is never predicted"));
}

// 200 clients with the largest counts and weights, whose sum is 2^63.6.
TEST(FedtmTest, TheLargestClaimsDoNotWrap) {
  const auto server = make_server();
  const State upload = says(UINT32_MAX, kMaximumWeight, 0);
  const auto model = hand_made::fuse(*server, std::vector<State>(200, upload));
  EXPECT_THAT(weights_of(model->members()[0], 0), ElementsAre(kMaximumWeight, -1));
  EXPECT_THAT(read_clauses(hand_made::flat_layout(6), 3 * 2, "0.clauses", server->broadcast(2)).weights,
              ElementsAre(kMaximumWeight, 1, 1, 1, 1, 1));
}

// A round counts its own uploads only.
TEST(FedtmTest, RoundsDoNotMix) {
  const auto server = make_server();
  hand_made::fuse(*server, {says(100, 50, 0), says(90, 50, 1)});
  server->accept(0, says(1, 3, 2));
  server->finish_round(2);
  const TsetlinModel model = model_of(*server);
  EXPECT_THAT(weights_of(model.members()[0], 0), ElementsAre(3, -1));
  EXPECT_THAT(literals_of(model.members()[0], 0, 0), ElementsAre(2));
}

TEST(FedtmTest, IdenticalClientsAreAFixedPoint) {
  const State upload = upload_of({{.label = 0, .samples = 3, .weights = {7, 12}, .clauses = {{0, 4}, {1}}},
                                  {.label = 2, .samples = 5, .weights = {9, 2}, .clauses = {{2}, {3, 5}}}},
                                 6);
  EXPECT_EQ(hand_made::fuse(*make_server(), {upload, upload, upload})->state(),
            hand_made::fuse(*make_server(), {upload})->state());
}

TEST(FedtmTest, BroadcastIsTheModelToGoOnFrom) {
  const auto server = make_server();
  EXPECT_TRUE(server->broadcast(1).tensors().empty());
  hand_made::fuse(*server, {says(5, 17, 2)});
  const State broadcast = server->broadcast(2);
  const WeightedClauses clauses = read_clauses(hand_made::flat_layout(6), 3 * 2, "0.clauses", broadcast);
  EXPECT_THAT(clauses.weights, ElementsAre(17, 1, 1, 1, 1, 1));
  BitMatrix actions(3 * 2, 6);
  actions.set(0, 2, true);
  EXPECT_EQ(clauses.actions, actions);
}

// What the server ORs is broadcast as it is: clauses that contradict themselves are not cut short.
TEST(FedtmTest, BroadcastKeepsContradictions) {
  const auto server = make_server();
  hand_made::fuse(*server, {says(5, 17, 2), says(4, 17, 5)});
  const WeightedClauses clauses =
      read_clauses(hand_made::flat_layout(6), 3 * 2, "0.clauses", server->broadcast(2));
  EXPECT_EQ(clauses.actions.row(0)[0], 0b100100u);
}

TEST(FedtmTest, SaveAndRestore) {
  const auto server = make_server();
  hand_made::fuse(*server, {says(5, 17, 2), says(4, 11, 3)});
  const auto restored = make_server();
  restored->restore(decode(encode(server->save()), "checkpoint"));
  EXPECT_EQ(restored->model()->state(), server->model()->state());
  EXPECT_EQ(restored->broadcast(2), server->broadcast(2));
  for (ServerHalf* half : {server.get(), restored.get()}) {
    half->accept(0, says(1, 5, 1, /*label=*/2));
    half->finish_round(2);
  }
  EXPECT_EQ(restored->model()->state(), server->model()->state());
}

TEST(FedtmTest, RestoringAnotherShapeIsRefused) {
  const auto server = make_server();
  hand_made::fuse(*server, {says(5, 17, 2)});
  const State saved = server->save();
  std::string text = kRecipe;
  text.replace(text.find("clauses = 2"), 11, "clauses = 4");
  const auto other = hand_made::method_of(text, hand_made::images(3, 3))->make_server();
  EXPECT_THAT(error_text([&] { other->restore(saved); }), HasSubstr("'0.clauses'"));
}

// An upload that is refused leaves nothing of itself behind.
TEST(FedtmTest, ARefusedUploadDoesNotCount) {
  const auto server = make_server();
  EXPECT_NE(error_text([&] { server->accept(0, says(5, kMaximumWeight + 1, 1)); }), "");
  const auto model = hand_made::fuse(*server, {says(5, 17, 2)});
  EXPECT_THAT(weights_of(model->members()[0], 0), ElementsAre(17, -1));
  EXPECT_THAT(literals_of(model->members()[0], 0, 0), ElementsAre(2));
}

}  // namespace
}  // namespace bitfed
