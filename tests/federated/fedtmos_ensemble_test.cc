#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bitfed/federated/tsetlin/tsetlin_client.h"
#include "bitfed/tsetlin/machine/machine.h"
#include "tests/base/error_text.h"
#include "tests/federated/hand_made.h"

namespace bitfed {
namespace {

using hand_made::Bank;
using hand_made::literals_of;
using hand_made::upload_of;
using hand_made::weights_of;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr const char* kRecipe =
    "[model]\nname = \"tm\"\nclauses = 2\nthreshold = 20\n[method]\nname = \"fedtmos-ensemble\"\n";

State client(const std::vector<Bank>& banks) {
  return upload_of(banks, 4);
}

// Two clients that share class 0; class 2 is nobody's.
std::vector<State> uploads() {
  return {client({{.label = 0, .samples = 9, .weights = {5, 30}, .clauses = {{0}, {3}}},
                  {.label = 1, .samples = 1, .weights = {2, 3}, .clauses = {{2}, {1}}}}),
          client({{.label = 0, .samples = 4, .weights = {8, 1}, .clauses = {{0, 1}, {}}}})};
}

std::unique_ptr<TsetlinModel> ensemble(const std::vector<State>& messages, const std::string& more = "") {
  const auto method = hand_made::method_of(kRecipe + more, hand_made::images(2, 3));
  return hand_made::fuse(*method->make_server(), messages);
}

TEST(FedtmosEnsembleTest, OneMachinePerClientAsItWasUploaded) {
  const auto model = ensemble(uploads());
  ASSERT_EQ(model->members().size(), 2u);
  const TsetlinMember& first = model->members()[0];
  EXPECT_THAT(weights_of(first, 0), ElementsAre(5, -30));
  EXPECT_THAT(weights_of(first, 1), ElementsAre(2, -3));
  EXPECT_THAT(weights_of(first, 2), Each(0));
  EXPECT_THAT(literals_of(first, 0, 1), ElementsAre(3));
  const TsetlinMember& second = model->members()[1];
  EXPECT_THAT(weights_of(second, 0), ElementsAre(8, -1));
  EXPECT_THAT(weights_of(second, 1), Each(0));
  EXPECT_THAT(literals_of(second, 0, 0), ElementsAre(0, 1));
  EXPECT_EQ(first.clamp, 0);
  EXPECT_EQ(first.scale, 20);
}

TEST(FedtmosEnsembleTest, ScoresByHand) {
  const auto model = ensemble(uploads());
  ThreadPool pool(1);
  // Literals: 0 = first pixel, 1 = second, 2 and 3 their negations. The empty clause is silent.
  const Dataset data = hand_made::images(2, 3, {{1, 1}, {1, 0}, {0, 0}});
  // Class 2 is below the least sums of the others, -30 and -1.
  const float absent = -31 / 20.0f + -2 / 20.0f;
  EXPECT_THAT(model->scores(data, pool),
              Pointwise(FloatEq(), {(5 + 8) / 20.0f, -3 / 20.0f, absent, (5 - 30) / 20.0f, 0.0f, absent,
                                    -30 / 20.0f, 2 / 20.0f, absent}));
}

// As the authors' code: clamped to ±20, then divided by the span over all three samples, 5 - -20 in the first
// machine and 8 - -2 in the second, where class 2, which nobody holds, has -2.
TEST(FedtmosEnsembleTest, BatchScoresByHand) {
  const auto model = ensemble(uploads(), "normalise = \"batch\"\n");
  ThreadPool pool(1);
  const Dataset data = hand_made::images(2, 3, {{1, 1}, {1, 0}, {0, 0}});
  const float absent = -20 / 25.0f + -2 / 10.0f;
  EXPECT_THAT(model->scores(data, pool),
              Pointwise(FloatEq(), {5 / 25.0f + 8 / 10.0f, -3 / 25.0f, absent, -20 / 25.0f, 0.0f, absent,
                                    -20 / 25.0f, 2 / 25.0f, absent}));
}

// Every machine's sum of class 1 ends at -T, where that of class 0, which nobody holds, would be.
TEST(FedtmosEnsembleTest, AnAbsentClassLosesTiesOfClampedSums) {
  const State upload = client({{.label = 1, .samples = 9, .weights = {1, 30}, .clauses = {{0}, {3}}},
                               {.label = 2, .samples = 9, .weights = {1, 50}, .clauses = {{0}, {3}}}});
  const auto model = ensemble({upload, upload}, "normalise = \"batch\"\n");
  ThreadPool pool(1);
  EXPECT_THAT(predict(*model, hand_made::images(2, 3, {{0, 0}, {1, 0}, {1, 1}}), pool), Each(1));
}

// The span of the means, 1 - 0 by default, over the part of the three classes that a machine holds.
TEST(FedtmosEnsembleTest, TrainingScalesByHand) {
  const auto model = ensemble(uploads(), "normalise = \"training\"\n");
  EXPECT_EQ(model->members()[0].scale, 3 / 2.0f);
  EXPECT_EQ(model->members()[1].scale, 3 / 1.0f);
}

// Clauses without literals never fire: such a model could only ever predict the first class.
TEST(FedtmosEnsembleTest, AnEmptyModelIsAFailure) {
  EXPECT_THAT(error_text([] {
                ensemble({client({{.weights = {5, 3}, .clauses = {{}, {}}}})});
              }),
              HasSubstr("empty model"));
}

// Nothing is said of good evidence, only of little.
TEST(FedtmosEnsembleTest, LittleEvidenceIsNoted) {
  const auto server = hand_made::method_of(kRecipe, hand_made::images(2, 3))->make_server();
  hand_made::fuse(*server, {client({{.label = 0, .samples = 9, .weights = {5, 30}, .clauses = {{0}, {3}}},
                                    {.label = 1, .samples = 40, .weights = {2, 3}, .clauses = {{2}, {1}}}})});
  EXPECT_THAT(server->notes(), ElementsAre(HasSubstr("class '0' has 9 samples"), HasSubstr("holds class '2'"),
                                           HasSubstr("2 of 2 class banks")));
}

TEST(FedtmosEnsembleTest, OrderOfArrivalDoesNotMatter) {
  const auto method = hand_made::method_of(kRecipe, hand_made::images(2, 3));
  const auto server = method->make_server();
  server->accept(1, uploads()[1]);
  server->accept(0, uploads()[0]);
  server->finish_round(1);
  EXPECT_EQ(server->model()->state(), ensemble(uploads())->state());
}

// The sum of n identical machines predicts as one does: n times its scores.
TEST(FedtmosEnsembleTest, IdenticalClientsAgree) {
  const State upload = uploads()[0];
  ThreadPool pool(1);
  const Dataset data = hand_made::images(2, 3, hand_made::all_images(2));
  const std::vector<float> one = ensemble({upload})->scores(data, pool);
  const std::vector<float> three = ensemble({upload, upload, upload})->scores(data, pool);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_FLOAT_EQ(three[i], 3 * one[i]);
}

// The ensemble of one client that holds all data is the plain machine, trained without a federation.
TEST(FedtmosEnsembleTest, OneClientIsItsMachine) {
  Dataset data = hand_made::images(2, 3, {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {1, 1}, {0, 0}});
  data.labels = {0, 1, 2, 1, 1, 0};
  const Config config = Config::parse(std::string(kRecipe) + "[client]\nepochs = 4\n", "recipe.toml");
  const MethodContext context{config, hand_made::images(2, 3), 0};
  const RandomStream random({7, "client"});
  const auto method = make_method(context);
  const auto server = method->make_server();
  const State upload = method->make_client()->train(server->broadcast(1), data, {random, {}, {}, {}});
  const auto model = hand_made::fuse(*server, {upload});

  const SpecialistSpec spec = read_tsetlin_recipe(context).specialists.front();
  TsetlinMachine machine(spec.options, spec.shape(data), 3);
  const BitImages images = booleanize(spec.booleanizer, data);
  for (uint32_t epoch = 0; epoch < 4; ++epoch) {
    machine.train_epoch(images, data.labels, random.substream(0).substream(epoch));
  }
  TsetlinMember expected = member_of(machine, spec.booleanizer);
  expected.clamp = 0;  // sums are clamped in training alone
  reduce_clauses(clause_layout(spec.shape(data), spec.booleanizer), &expected.actions);
  EXPECT_EQ(model->state(), TsetlinModel(3, {expected}).state());
}

// A composite: each client brings every specialist.
TEST(FedtmosEnsembleTest, Composite) {
  const std::string recipe =
      "[model]\nname = \"ctm-composite\"\n"
      "[[model.member]]\nclauses = 2\nthreshold = 10\npatch = [1, 1]\n"
      "[[model.member]]\nclauses = 4\nthreshold = 40\npatch = [1, 2]\n"
      "[method]\nname = \"fedtmos-ensemble\"\n";
  const auto method = hand_made::method_of(recipe, hand_made::images(2, 3));
  State upload;
  upload.add("classes", {1}, std::vector<uint16_t>{1});
  upload.add("samples", {1}, std::vector<uint32_t>{5});
  // A patch of one pixel in a row of two: one position bit and one pixel, four literals.
  const PatchShape one = {.height = 1, .width = 2, .planes = 1, .patch_height = 1, .patch_width = 1};
  BitMatrix actions(2, 4);
  set_bit(actions.row(0), 1);
  add_clauses(clause_layout(one, {}), {actions, {1, 2}}, "0.clauses", &upload);
  upload.add("0.calibration", {1, 3}, std::vector<float>{1, 0, 0});
  add_clauses(hand_made::flat_layout(4), {BitMatrix(4, 4), {3, 4, 5, 6}}, "1.clauses", &upload);
  upload.add("1.calibration", {1, 3}, std::vector<float>{1, 0, 0});
  hand_made::add_familiar({}, 4, hand_made::flat_layout(4), "1", &upload);
  const auto model = hand_made::fuse(*method->make_server(), {upload, upload});
  ASSERT_EQ(model->members().size(), 4u);
  EXPECT_THAT(weights_of(model->members()[0], 1), ElementsAre(1, -2));
  EXPECT_THAT(weights_of(model->members()[1], 1), ElementsAre(3, -4, 5, -6));
  EXPECT_EQ(model->members()[0].scale, 10);
  EXPECT_EQ(model->members()[1].scale, 40);
  EXPECT_EQ(model->members()[3].clauses, 4u);
}

}  // namespace
}  // namespace bitfed
