// fedtm-bank on banks small enough to compute by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/federated/hand_made_banks.h"

namespace bitfed {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Weight 1/2 at a hundred samples, 3/4 at three hundred: of the one holder's view 2/5, of the other's 3/5.
TEST(FedtmBankTest, ScoreByHand) {
  const Bank other{.label = 1, .samples = 1, .weights = {1, 1}, .clauses = {{0}, {1}}};
  const Bank small{.label = 0, .samples = 100, .weights = {10, 1}, .clauses = {{0}, {}}, .positive_mean = 10};
  const Bank large{.label = 0,
                   .samples = 300,
                   .weights = {6, 1},
                   .clauses = {{1}, {}},
                   .positive_mean = 4,
                   .negative_mean = -4};
  const auto model = fold({{small, other}, {large, other}}, 2, 2);
  const std::vector<float> scores = all_scores(*model);
  const auto score = [&](size_t image) { return scores[2 * image]; };  // bit i of the image: pixel i
  EXPECT_NEAR(score(0), 0.4 * (0.0 - 0.5) + 0.6 * (0.5 - 0.5), 1e-6);
  EXPECT_NEAR(score(1), 0.4 * (1.0 - 0.5) + 0.6 * (0.5 - 0.5), 1e-6);
  EXPECT_NEAR(score(2), 0.4 * (0.0 - 0.5) + 0.6 * (1.25 - 0.5), 1e-6);
  EXPECT_NEAR(score(3), 0.4 * (1.0 - 0.5) + 0.6 * (1.25 - 0.5), 1e-6);
}

// Once a bank is whole, what is left of the room goes to familiar clauses. A holder that knows pixel 2, or
// pixel 3 with twice the weight, and on average half of what both weigh together: where neither is there, a
// fifth is lost.
TEST(FedtmBankTest, FamiliarSamplesByHand) {
  const auto bank = [](uint16_t label, size_t literal) {
    return Bank{.label = label,
                .samples = 100,
                .weights = std::vector<int32_t>(8, 5),
                .clauses = {{literal}, {}, {literal}, {}, {}, {}, {}, {}},
                .positive_mean = 10};
  };
  const Familiar familiar{.weights = {20, 10}, .clauses = {{3}, {2}}, .mean = 15};
  const std::vector<State> uploads = {upload_of({bank(0, 0), bank(1, 1)}, kLiterals, familiar)};
  const auto scores = [&](int models) {
    const auto method = hand_made::method_of(recipe(8, models), hand_made::images(kWidth, 3));
    return all_scores(*hand_made::fuse(*method->make_server(), uploads));
  };
  const std::vector<float> roomy = scores(2);
  const auto score = [&](size_t image) { return roomy[3 * image]; };  // bit i of the image: pixel i
  EXPECT_NEAR(score(1), 0.5 - 0.1, 1e-6);
  EXPECT_NEAR(score(1 + 4), 0.5 + 0.1 * (10.0 / 15 - 1), 1e-6);
  EXPECT_NEAR(score(1 + 8), 0.5 + 0.1 * (20.0 / 15 - 1), 1e-6);
  EXPECT_NEAR(score(4 + 8), -0.5 + 0.1 * (30.0 / 15 - 1), 1e-6);
  EXPECT_NEAR(scores(1)[3 * 1], 0.5, 1e-6);  // no room for them
}

// Sixteen holders, of which ten times as many take part as the model has machines: the two with the fewest
// samples are left out. Their clauses demand pixel 3, those of the others pixel 0.
TEST(FedtmBankTest, OfManyHoldersTheLargest) {
  const Bank other{.label = 1, .samples = 50, .weights = {1, 1}, .clauses = {{1}, {2}}};
  Clients clients;
  for (uint32_t i = 0; i < 16; ++i) {
    const bool small = i == 3 || i == 7;
    const Bank bank{.label = 0,
                    .samples = small ? 10u : 100u,
                    .weights = {10, 1},
                    .clauses = {{small ? 3u : 0u}, {}},
                    .positive_mean = 10};
    clients.push_back({bank, other});
  }
  const auto kept = [&](int models) {
    std::set<size_t> literals;
    const auto model = fold(clients, 2, models);
    for (size_t clause = 0; clause < model->members()[0].clauses; ++clause) {
      for (const size_t literal : literals_of(model->members()[0], 0, clause)) literals.insert(literal);
    }
    return literals;
  };
  EXPECT_THAT(kept(1), ElementsAre(0));
  EXPECT_THAT(kept(16), ElementsAre(0, 3));
}

// The same two holders, with a clause that would be kept. Those who hold class 0 have seen two classes: all
// of two, two thirds of three, half of four, or most of four where twelve have seen all.
TEST(FedtmBankTest, AllHoldersTakePartWhereTheyHaveSeenFewClasses) {
  const auto takes_part = [](size_t classes, size_t complete) {
    Clients clients;
    for (uint32_t i = 0; i < 16; ++i) {
      const bool small = i == 3 || i == 7;
      std::vector<Bank> banks = {{.label = 0,
                                  .samples = small ? 10u : 100u,
                                  .weights = {small ? 9000 : 10, 1},
                                  .clauses = {{small ? 3u : 0u}, {}},
                                  .positive_mean = 10}};
      for (uint16_t label = 1; label < (i < complete ? classes : 2); ++label)
        banks.push_back({.label = label, .samples = 50, .weights = {1, 1}, .clauses = {{1}, {2}}});
      clients.push_back(banks);
    }
    std::set<size_t> literals;
    const auto model = fold(clients, classes, 1);
    for (size_t clause = 0; clause < model->members()[0].clauses; ++clause) {
      for (const size_t literal : literals_of(model->members()[0], 0, clause)) literals.insert(literal);
    }
    return literals.contains(3);
  };
  EXPECT_FALSE(takes_part(2, 0));
  EXPECT_TRUE(takes_part(3, 0));
  EXPECT_TRUE(takes_part(4, 0));
  EXPECT_FALSE(takes_part(4, 12));
}

// Sixteen holders with a clause for and one against, all of the same weight, and room for eight of the 32
// clauses: four of each polarity, each of which stands for four.
TEST(FedtmBankTest, OfManyHoldersASample) {
  const Bank bank{.label = 0, .samples = 100, .weights = {6, 6}, .clauses = {{0}, {1}}, .positive_mean = 6};
  Bank other = bank;
  other.label = 1;
  const Clients clients(16, {bank, other});
  const TsetlinMember whole = fold(clients, 2, 16)->members()[0];
  const TsetlinMember sampled = fold(clients, 2, 4)->members()[0];
  ASSERT_EQ(whole.clauses, 32u);
  ASSERT_EQ(sampled.clauses, 8u);
  for (size_t clause = 0; clause < 8; ++clause) {
    EXPECT_THAT(literals_of(sampled, 0, clause), ElementsAre(clause < 4 ? 0 : 1));
    EXPECT_NEAR(sampled.weights[clause] / sampled.scale, (clause < 4 ? 4 : -4) / 16.0, 1e-6);
  }
  EXPECT_EQ(sampled.bias[0] / sampled.scale, whole.bias[0] / whole.scale);
}

// A clause that weighs more than a step is kept with its own weight; the others share what room is left.
TEST(FedtmBankTest, OfManyHoldersHeavyClausesAreCertain) {
  Clients clients;
  for (size_t i = 0; i < 16; ++i) {
    const Bank bank{.label = 0,
                    .samples = 100,
                    .weights = {i == 5 ? 90 : 1, 1},
                    .clauses = {{i == 5 ? 3u : 0u}, {}},
                    .positive_mean = 6};
    clients.push_back({bank, {.label = 1, .samples = 100, .weights = {1, 1}, .clauses = {{0}, {}}}});
  }
  const TsetlinMember member = fold(clients, 2, 1)->members()[0];  // ten holders, two clauses
  ASSERT_EQ(member.clauses, 2u);
  std::map<size_t, double> weights;
  for (size_t clause = 0; clause < 2; ++clause)
    weights[literals_of(member, 0, clause)[0]] = member.weights[clause] / member.scale;
  EXPECT_NEAR(weights[3] / weights[0], 90 / 9.0, 1e-5);
}

// Sixteen holders, but one has nearly all samples: (1015)^2 / (1000^2 + 15) = 1.03 effective holders are few.
// The pair that there is room for is the large holder's, with the votes 10 / 10 and 5 / 10.
TEST(FedtmBankTest, HoldersWithNextToNoSamplesDoNotMakeMany) {
  const Bank large{
      .label = 0, .samples = 1000, .weights = {10, 5}, .clauses = {{0}, {1}}, .positive_mean = 10};
  const Bank small{.label = 0, .samples = 1, .weights = {90, 90}, .clauses = {{2}, {3}}, .positive_mean = 10};
  const Bank other{.label = 1, .samples = 100, .weights = {1, 1}, .clauses = {{0}, {1}}};
  Clients clients(15, {small, other});
  clients.push_back({large, other});
  const TsetlinMember member = fold(clients, 2, 1)->members()[0];
  ASSERT_EQ(member.clauses, 2u);
  EXPECT_THAT(literals_of(member, 0, 0), ElementsAre(0));
  EXPECT_THAT(literals_of(member, 0, 1), ElementsAre(1));
  EXPECT_NEAR(member.weights[0] / member.scale, 1, 1e-6);
  EXPECT_NEAR(member.weights[1] / member.scale, -0.5, 1e-6);
  EXPECT_NEAR(member.bias[0] / member.scale, -0.5, 1e-6);
}

// Thirty holders with as much trust together as matters, beside one that claims more samples than all of
// them: counted by samples it is one, but the thirty decide, and they are many. Their clauses are sampled:
// the pair that there is room for stands for all, and does not have the large holder's votes.
TEST(FedtmBankTest, AHolderWithLittleOfTheTrustDoesNotMakeFew) {
  const Bank other{.label = 1, .samples = 100, .weights = {1, 1}, .clauses = {{0}, {1}}};
  const Bank small{
      .label = 0, .samples = 60, .weights = {10, 10}, .clauses = {{2}, {3}}, .positive_mean = 10};
  for (const uint32_t claimed : {3000u, UINT32_MAX}) {
    const Bank large{
        .label = 0, .samples = claimed, .weights = {1, 1}, .clauses = {{0}, {1}}, .positive_mean = 10};
    Clients clients(30, {small, other});
    clients.push_back({large, other});
    const TsetlinMember member = fold(clients, 2, 1)->members()[0];
    ASSERT_EQ(member.clauses, 2u);
    EXPECT_THAT(literals_of(member, 0, 0), ElementsAre(2));
    EXPECT_THAT(literals_of(member, 0, 1), ElementsAre(3));
  }
}

// Thirty holders have seen two classes of four, so that all of them take part, also the two with the fewest
// samples: and still where one client claims all classes and more samples than all others.
TEST(FedtmBankTest, AClaimOfSamplesDoesNotShutOthersOut) {
  Clients clients;
  for (uint32_t i = 0; i < 30; ++i) {
    const bool small = i == 3 || i == 7;
    clients.push_back({{.label = 0,
                        .samples = small ? 10u : 50u,
                        .weights = {small ? 9000 : 10, 1},
                        .clauses = {{small ? 3u : 0u}, {}},
                        .positive_mean = 10},
                       {.label = 1, .samples = 50, .weights = {1, 1}, .clauses = {{1}, {2}}}});
  }
  std::vector<Bank>& liar = clients.emplace_back();
  for (uint16_t label = 0; label < 4; ++label)
    liar.push_back({.label = label, .samples = UINT32_MAX, .weights = {1, 1}, .clauses = {{1}, {2}}});
  std::set<size_t> literals;
  const TsetlinMember member = fold(clients, 4, 1)->members()[0];
  for (size_t clause = 0; clause < member.clauses; ++clause) {
    for (const size_t literal : literals_of(member, 0, clause)) literals.insert(literal);
  }
  EXPECT_TRUE(literals.contains(3));
}

// 0 is said of the class that a holder tells apart worst, not of its others on average.
TEST(FedtmBankTest, TheHardestClassIsTheOther) {
  const Bank other{.label = 1, .samples = 1, .weights = {1, 1}, .clauses = {{3}, {}}};
  const Bank bank{.label = 0,
                  .samples = 100,
                  .weights = {10, 4},
                  .clauses = {{0}, {1}},
                  .positive_mean = 10,
                  .negative_mean = -4,
                  .hardest_excess = 6};
  const std::vector<float> scores = all_scores(*fold({{bank, other}}, 2, 1));
  EXPECT_NEAR(scores[2 * 1], (10.0 - 2) / 8 - 0.5, 1e-6);
  EXPECT_NEAR(scores[2 * 2], (-4.0 - 2) / 8 - 0.5, 1e-6);
  // A client that claims another class to be harder than its own is high cannot push the class down by that.
  Bank liar = bank;
  liar.hardest_excess = 1e6;
  EXPECT_NEAR(all_scores(*fold({{liar, other}}, 2, 1))[2 * 1], (10.0 - 10) / 1 - 0.5, 1e-6);
}

// Three holders, six clauses, one model: one clause of each polarity for each.
TEST(FedtmBankTest, PruningKeepsTheHeaviestOfEachPolarity) {
  const Bank bank{
      .label = 0, .samples = 100, .weights = {3, 9, 7, 8, 7, 10}, .clauses = {{0}, {1}, {2}, {3}, {4}, {}}};
  const Bank other{
      .label = 1, .samples = 1, .weights = {1, 1, 1, 1, 1, 1}, .clauses = {{0}, {}, {}, {}, {}, {}}};
  const auto three = fold({{bank, other}, {bank, other}, {bank, other}}, 2, 1);
  const TsetlinMember& member = three->members()[0];
  // For: clause 2 (7, the lower of two equals). Against: clause 1 (9), since 10 is empty.
  ASSERT_EQ(member.clauses, 6u);
  for (const size_t holder : {0u, 1u, 2u}) {
    EXPECT_THAT(literals_of(member, 0, 2 * holder), ElementsAre(2));
    EXPECT_THAT(literals_of(member, 0, 2 * holder + 1), ElementsAre(1));
  }
  // What is left for, 7 of 3, 7 and 7 to the power of 3/2, is 0.43849; against, 9 of 9 and 8, 0.54405. T,
  // which is 1, shrinks to their mean and is more than mu+ times 0.43849.
  EXPECT_NEAR(member.weights[0] / member.scale, 7.0 / 3 / 0.49127, 1e-4);
  EXPECT_NEAR(member.weights[1] / member.scale, -9.0 / 3 / 0.49127, 1e-4);
  // Alone it has room for all: the five that are not empty.
  const auto one = fold({{bank, other}}, 2, 1);
  EXPECT_EQ(one->members()[0].clauses, 5u);
}

// Trusts of 3/4, 1/2 and 1/101 share four pairs: three (3/4, 3/8 and 1/4 a pair, the first of two equals),
// one, and none. A bank of two pairs can take no third one: it goes to the second.
TEST(FedtmBankTest, TheBudgetIsSharedByTrust) {
  const auto holder = [](uint32_t samples, size_t literal, size_t clauses) {
    const auto bank = [&](uint16_t label) {
      return Bank{.label = label,
                  .samples = samples,
                  .weights = std::vector<int32_t>(clauses, 2),
                  .clauses = std::vector<std::vector<size_t>>(clauses, {literal})};
    };
    return std::vector<Bank>{bank(0), bank(1)};
  };
  const auto kept = [&](size_t clauses, int models) {
    const auto model =
        fold({holder(300, 0, clauses), holder(100, 1, clauses), holder(1, 2, clauses)}, 2, models);
    std::vector<size_t> counts(3);
    const TsetlinMember& member = model->members()[0];
    for (size_t clause = 0; clause < member.clauses; ++clause) ++counts[literals_of(member, 0, clause).at(0)];
    return counts;
  };
  EXPECT_THAT(kept(8, 1), ElementsAre(6, 2, 0));
  EXPECT_THAT(kept(4, 2), ElementsAre(4, 4, 0));
  EXPECT_THAT(kept(4, 3), ElementsAre(4, 4, 4));
}

// What pruning takes from the sums it takes from mu+ and mu- too: with half the weight of each polarity gone,
// a sample on which all that is left for the class fires still scores as one of the holder's own.
TEST(FedtmBankTest, CalibrationFollowsThePruning) {
  const Bank bank{.label = 0,
                  .samples = 100,
                  .weights = {30, 20, 30, 20},
                  .clauses = {{0}, {1}, {0}, {1}},
                  .positive_mean = 60,
                  .negative_mean = -40};
  Bank other = bank;
  other.label = 1;
  for (const int models : {1, 2}) {  // two holders: half of each bank, or all of it
    const std::vector<float> scores = all_scores(*fold({{bank, other}, {bank, other}}, 2, models));
    EXPECT_NEAR(scores[2 * 1], 0.5, 1e-5) << models;   // pixel 0 alone
    EXPECT_NEAR(scores[2 * 2], -0.5, 1e-5) << models;  // pixel 1 alone
  }
}

TEST(FedtmBankTest, HoldersWithoutNegativesSpeakOnlyIfNobodyElseDoes) {
  const Bank other{.label = 1, .samples = 50, .weights = {1, 1}, .clauses = {{3}, {}}};
  const Bank taught{.label = 0, .samples = 50, .weights = {2, 1}, .clauses = {{0}, {}}, .positive_mean = 2};
  const Bank alone{.label = 0, .samples = 5000, .weights = {4, 1}, .clauses = {{1}, {}}, .positive_mean = 4};
  const std::vector<float> both = all_scores(*fold({{taught, other}, {alone}}, 2, 4));
  const std::vector<float> only = all_scores(*fold({{taught, other}}, 2, 4));
  EXPECT_EQ(both, only);
  // Class 0 held by single-class clients alone: image 2 has only pixel 1.
  const Bank elsewhere{.label = 1, .samples = 50, .weights = {1, 1}, .clauses = {{3}, {}}};
  const std::vector<float> single = all_scores(*fold({{alone}, {elsewhere}}, 2, 4));
  EXPECT_NEAR(single[2 * 2], 0.5, 1e-6);
  EXPECT_NEAR(single[2 * 1], -0.5, 1e-6);
}

// A holder whose positives do not outvote its negatives cannot be calibrated.
TEST(FedtmBankTest, HoldersThatCannotTellAreLeftOut) {
  const Bank other{.label = 1, .samples = 50, .weights = {1, 1}, .clauses = {{3}, {}}};
  const Bank good{.label = 0, .samples = 50, .weights = {2, 1}, .clauses = {{0}, {}}, .positive_mean = 2};
  Bank bad{.label = 0, .samples = 5000, .weights = {4, 1}, .clauses = {{1}, {}}, .positive_mean = 3};
  for (const float negative_mean : {3.0f, 4.0f}) {
    bad.negative_mean = negative_mean;
    EXPECT_EQ(all_scores(*fold({{good, other}, {bad, other}}, 2, 4)),
              all_scores(*fold({{good, other}, {other}}, 2, 4)));
  }
}

// Class 0's one clause votes against with fifty times the spread: it scores far below any fixed floor.
// Class 1 is nobody's, class 2's only holder cannot tell it from others.
TEST(FedtmBankTest, AClassThatNobodySpeaksForNeverWins) {
  const Bank harsh{.label = 0,
                   .samples = 100,
                   .weights = {1, 100},
                   .clauses = {{0}, {1}},
                   .positive_mean = 1,
                   .negative_mean = -1};
  const Bank blind{.label = 2,
                   .samples = 100,
                   .weights = {1, 1},
                   .clauses = {{0}, {1}},
                   .positive_mean = -1,
                   .negative_mean = 1};
  const Bank empty{.label = 3, .samples = 100, .weights = {1, 1}, .clauses = {{}, {}}};
  const auto model = fold({{harsh, blind, empty}}, 5, 1);
  ThreadPool pool(1);
  const Dataset data = hand_made::images(kWidth, 5, hand_made::all_images(kWidth));
  EXPECT_THAT(predict(*model, data, pool), testing::Each(0));
  // And the scores of the class that is spoken for stay what they are: image 2 has only pixel 1.
  EXPECT_NEAR(all_scores(*model)[2 * 5], (-100.0 + 1) / 2 - 0.5, 1e-4);
}

// A composite in which one machine cannot tell class 1 from others and the other can: it may still win.
TEST(FedtmBankTest, OneSilentMachineDoesNotSilenceTheOthers) {
  const std::string composite =
      "[model]\nname = \"ctm-composite\"\n"
      "[[model.member]]\nclauses = 2\nthreshold = 1\npatch = [1, 4]\n"
      "[[model.member]]\nclauses = 2\nthreshold = 1\npatch = [1, 4]\n"
      "[method]\nname = \"fedtm-bank\"\n";
  // Class 0 wants pixel 0 and has a vote of -100 against pixel 1; class 1 wants pixel 1, class 2 is nobody's.
  const std::vector<Bank> banks = {
      {.label = 0, .samples = 100, .weights = {1, 100}, .clauses = {{0}, {1}}, .positive_mean = 1},
      {.label = 1, .samples = 100, .weights = {1, 1}, .clauses = {{1}, {0}}, .positive_mean = 1}};
  std::vector<Bank> blind = banks;
  blind[1].positive_mean = -1;
  State upload = upload_of(banks, kLiterals);
  const State second = upload_of(blind, kLiterals);
  for (Tensor tensor : second.tensors()) {
    if (!tensor.name.starts_with("0.")) continue;
    tensor.name[0] = '1';
    upload.add(std::move(tensor));
  }
  const auto method = hand_made::method_of(composite, hand_made::images(kWidth, 3));
  const auto model = hand_made::fuse(*method->make_server(), {upload});
  ThreadPool pool(1);
  const Dataset data = hand_made::images(kWidth, 3, {{1, 0, 0, 0}, {0, 1, 0, 0}, {1, 1, 0, 0}});
  EXPECT_THAT(predict(*model, data, pool), ElementsAre(0, 1, 1));
}

// Room for two clauses: only the holder with the most samples keeps its pair; the lower client of equals.
TEST(FedtmBankTest, MoreHoldersThanBudget) {
  const auto holder = [](uint32_t samples, size_t literal) {
    return std::vector<Bank>{
        {.label = 0, .samples = samples, .weights = {2, 3}, .clauses = {{literal}, {literal + 4}}},
        {.label = 1, .samples = 1, .weights = {1, 1}, .clauses = {{0}, {}}}};
  };
  const auto model = fold({holder(10, 0), holder(30, 1), holder(30, 2), holder(20, 3)}, 2, 1);
  const TsetlinMember& member = model->members()[0];
  ASSERT_EQ(member.clauses, 2u);
  EXPECT_THAT(literals_of(member, 0, 0), ElementsAre(1));
  EXPECT_THAT(literals_of(member, 0, 1), ElementsAre(5));
  EXPECT_NEAR(member.weights[0] / member.scale, 2, 1e-6);
}

TEST(FedtmBankTest, OrderOfArrivalDoesNotMatter) {
  RandomStream random({7, "order"});
  std::vector<State> uploads;
  for (int i = 0; i < 4; ++i) {
    uploads.push_back(upload_of({random_bank(0, 6, random), random_bank(2, 6, random)}, kLiterals));
  }
  const auto method = hand_made::method_of(recipe(6, 1), hand_made::images(kWidth, 3));
  const auto forward = method->make_server();
  const auto backward = method->make_server();
  for (uint32_t i = 0; i < 4; ++i) forward->accept(i, uploads[i]);
  for (uint32_t i = 4; i-- > 0;) backward->accept(i, uploads[i]);
  forward->finish_round(1);
  backward->finish_round(1);
  EXPECT_EQ(forward->model()->state(), backward->model()->state());
}

// Clients that all say the same are one client, as long as the budget leaves their banks whole.
TEST(FedtmBankTest, IdenticalClientsAreAFixedPoint) {
  RandomStream random({8, "same"});
  const std::vector<Bank> banks = {random_bank(0, 6, random), random_bank(1, 6, random)};
  const std::vector<float> one = all_scores(*fold({banks}, 2, 1));
  const std::vector<float> three = all_scores(*fold({banks, banks, banks}, 2, 3));
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], three[i], 1e-5);
}

}  // namespace
}  // namespace bitfed
