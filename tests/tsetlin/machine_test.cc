#include "bitfed/tsetlin/machine/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "bitfed/tsetlin/tsetlin_model.h"
#include "tests/tsetlin/reference_machine.h"

namespace bitfed {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;

constexpr double kNeverForget = std::numeric_limits<double>::infinity();

RandomStream stream(uint64_t number, uint64_t round = 0) {
  return RandomStream({.seed = number, .purpose = "machine test", .round = round});
}

// Puts the best unit back after a test that forced another.
class ForcedKernels {
 public:
  explicit ForcedKernels(const char* name) : before_(kernels().name) { force_kernels(name); }
  ~ForcedKernels() { force_kernels(before_); }

 private:
  const char* before_;
};

// Images of a few prototypes with flipped bits, so that clauses come to match, miss and compete.
struct Problem {
  BitImages images;
  std::vector<uint16_t> labels;
};

Problem noisy_prototypes(const PatchShape& shape, size_t classes, size_t count, double noise) {
  RandomStream random = stream(1);
  const BitImages prototypes = random_images(classes, shape, random);
  Problem problem{BitImages(count, shape.height, shape.width, shape.planes), {}};
  for (size_t i = 0; i < count; ++i) {
    const size_t label = random.below(static_cast<uint32_t>(classes));
    problem.labels.push_back(static_cast<uint16_t>(label));
    for (size_t y = 0; y < shape.height; ++y) {
      for (size_t column = 0; column < shape.width * shape.planes; ++column) {
        const bool flip = random.uniform() < noise;
        problem.images.bits.set(i * shape.height + y, column,
                                prototypes.bits.get(label * shape.height + y, column) != flip);
      }
    }
  }
  return problem;
}

// What lies behind the literals of a row: up to the next row's automata.
std::vector<int> padding_automata(const TsetlinMachine& machine, size_t row) {
  const uint8_t* first = machine.states(row).data();
  return std::vector<int>(first + machine.shape().literals(),
                          first + words_for(machine.shape().literals()) * 64);
}

void expect_same(const TsetlinMachine& machine, const ReferenceMachine& reference) {
  ASSERT_EQ(machine.weights().size(), reference.weights.size());
  EXPECT_THAT(machine.weights(), ElementsAreArray(reference.weights));
  const size_t literals = machine.shape().literals();
  size_t wrong_states = 0;
  size_t wrong_actions = 0;
  for (size_t row = 0; row < reference.states.size(); ++row) {
    for (size_t literal = 0; literal < literals; ++literal) {
      wrong_states += machine.states(row)[literal] != reference.states[row][literal] ? 1 : 0;
      wrong_actions += machine.actions().get(row, literal) != reference.includes(row, literal) ? 1 : 0;
    }
    for (size_t bit = literals; bit < machine.actions().stride() * 64; ++bit) {
      wrong_actions += machine.actions().get(row, bit) ? 1 : 0;
    }
    ASSERT_THAT(padding_automata(machine, row), Each(0)) << "row " << row;
  }
  EXPECT_EQ(wrong_states, 0u);
  EXPECT_EQ(wrong_actions, 0u);
}

struct Case {
  std::string name;
  PatchShape shape;
  MachineOptions options;
  size_t classes = 3;
  size_t samples = 60;
};

MachineOptions options_of(size_t clauses, int32_t threshold, double sensitivity) {
  MachineOptions options;
  options.clauses = clauses;
  options.threshold = threshold;
  options.sensitivity = sensitivity;
  return options;
}

std::vector<Case> cases() {
  const std::vector<Case> shapes = {
      {"Patches", {8, 8, 1, 3, 3}, options_of(10, 8, 3)},
      {"Planes", {6, 5, 3, 2, 3}, options_of(6, 5, 4.7)},
      {"Wide", {3, 70, 1, 2, 5}, options_of(4, 6, 10), 2, 40},
      {"Tall", {9, 4, 1, 3, 4}, options_of(70, 30, 2), 2, 40},  // more clauses than a word has bits
      {"TwoBlocks", {26, 26, 1, 3, 3}, options_of(4, 6, 5), 2, 20},
      {"Pixels", {4, 4, 2, 1, 1}, options_of(6, 4, 3.3)},
      {"Flat", {5, 7, 1, 5, 7}, options_of(10, 10, 3.9)},
      {"Table", {1, 1, 100, 1, 1}, options_of(8, 6, 10)},
      {"OneClass", {5, 5, 1, 2, 2}, options_of(6, 3, 3), 1, 40},
  };
  std::vector<Case> all;
  for (const Case& base : shapes) {
    for (const UpdateScheme scheme : {UpdateScheme::kOneVsAll, UpdateScheme::kOneVsOneRandom}) {
      for (const bool weighted : {true, false}) {
        for (const bool boost : {true, false}) {
          Case one = base;
          one.options.scheme = scheme;
          one.options.weighted = weighted;
          one.options.boost = boost;
          one.name += scheme == UpdateScheme::kOneVsAll ? "All" : "Random";
          one.name += weighted ? "Weighted" : "Unweighted";
          one.name += boost ? "Boost" : "NoBoost";
          all.push_back(one);
        }
      }
    }
  }
  return all;
}

class MachineAgainstReference : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Cases, MachineAgainstReference, testing::ValuesIn(cases()),
                         [](const auto& one) { return one.param.name; });

// The same states, actions and weights after every one of several epochs, on every instruction set.
TEST_P(MachineAgainstReference, IsIdentical) {
  const Case& one = GetParam();
  const Problem problem = noisy_prototypes(one.shape, one.classes, one.samples, 0.1);
  ReferenceMachine reference(one.options, one.shape, one.classes);
  std::vector<TsetlinMachine> machines;
  for (size_t i = 0; i < supported_kernels().size(); ++i) {
    machines.emplace_back(one.options, one.shape, one.classes);
  }
  for (uint64_t epoch = 0; epoch < 4; ++epoch) {
    reference.train_epoch(problem.images, problem.labels, stream(2, epoch));
    for (size_t i = 0; i < machines.size(); ++i) {
      SCOPED_TRACE(std::string(supported_kernels()[i]->name) + ", epoch " + std::to_string(epoch));
      const ForcedKernels forced(supported_kernels()[i]->name);
      machines[i].train_epoch(problem.images, problem.labels, stream(2, epoch));
      expect_same(machines[i], reference);
      if (HasFailure()) return;
    }
  }
  // The comparison is of something: the machine has included literals, and learned.
  size_t included = 0;
  for (size_t row = 0; row < reference.states.size(); ++row) {
    for (const int state : reference.states[row]) included += state >= 128 ? 1 : 0;
  }
  EXPECT_GT(included, 0u);
}

// A sharp machine for single steps: one row of two bits, the image (1, 0), so that the literals
// x0, x1, not x0, not x1 are 1 0 0 1.
constexpr PatchShape kTwoBits = {1, 2, 1, 1, 2};

BitImages one_zero() {
  BitImages images(1, 1, 2, 1);
  images.bits.set(0, 0, true);
  return images;
}

// `included` lists the included literals of every clause.
TsetlinMachine machine_of(const MachineOptions& options, const std::vector<std::vector<size_t>>& included,
                          const std::vector<int32_t>& weights, const PatchShape& shape = kTwoBits) {
  TsetlinMachine machine(options, shape, included.size() / options.clauses);
  BitMatrix actions(included.size(), shape.literals());
  for (size_t row = 0; row < included.size(); ++row) {
    for (const size_t literal : included[row]) actions.set(row, literal, true);
  }
  machine.restart_from(actions, weights);
  return machine;
}

std::vector<int> states(const TsetlinMachine& machine, size_t row) {
  return std::vector<int>(machine.states(row).begin(), machine.states(row).end());
}

void train_once(TsetlinMachine& machine, uint16_t label, uint64_t seed = 3) {
  machine.train_epoch(one_zero(), std::vector<uint16_t>{label}, stream(seed));
}

// A sample of the class whose votes are at -T: every clause gets feedback. Both are empty, so both fire.
TEST(Machine, TypeOneFiringWithBoostAndTypeTwo) {
  TsetlinMachine machine = machine_of(options_of(2, 4, 1), {{}, {}}, {1, 9});
  train_once(machine, 0);
  EXPECT_THAT(states(machine, 0),
              ElementsAre(128, 126, 126, 128));  // Type I: true up, false down (1 / s = 1)
  EXPECT_THAT(states(machine, 1), ElementsAre(127, 128, 128, 127));  // Type II: false ones toward inclusion
  EXPECT_THAT(machine.weights(), ElementsAre(2, 8));
  EXPECT_TRUE(machine.actions().get(0, 0));
  EXPECT_FALSE(machine.actions().get(0, 1));
  EXPECT_FALSE(machine.actions().get(0, 2));
  EXPECT_TRUE(machine.actions().get(0, 3));
  EXPECT_TRUE(machine.actions().get(1, 1));
  EXPECT_FALSE(machine.actions().get(1, 0));
}

TEST(Machine, TypeOneWithoutForgettingMovesTrueLiteralsOnly) {
  TsetlinMachine machine = machine_of(options_of(2, 4, kNeverForget), {{}, {}}, {1, 9});
  train_once(machine, 0);
  EXPECT_THAT(states(machine, 0), ElementsAre(128, 127, 127, 128));
}

// Without boost a true literal is rewarded with probability (s - 1) / s: never for s = 1.
TEST(Machine, TypeOneWithoutBoost) {
  MachineOptions options = options_of(2, 4, 1);
  options.boost = false;
  TsetlinMachine machine = machine_of(options, {{}, {}}, {1, 9});
  train_once(machine, 0);
  EXPECT_THAT(states(machine, 0), ElementsAre(127, 126, 126, 127));
  options.sensitivity = kNeverForget;
  machine = machine_of(options, {{}, {}}, {1, 9});
  train_once(machine, 0);
  EXPECT_THAT(states(machine, 0), ElementsAre(128, 127, 127, 128));
}

// The clause asks for x1, which the image lacks; with s = 1 everything is forgotten.
TEST(Machine, TypeOneNotFiringForgets) {
  TsetlinMachine machine = machine_of(options_of(2, 4, 1), {{1}, {}}, {1, 9});
  EXPECT_THAT(states(machine, 0), ElementsAre(127, 128, 127, 127));
  train_once(machine, 0);
  EXPECT_THAT(states(machine, 0), ElementsAre(126, 127, 126, 126));
  EXPECT_EQ(machine.weights()[0], 1);  // only a clause that fires gains weight
  EXPECT_FALSE(machine.actions().get(0, 1));
  machine = machine_of(options_of(2, 4, kNeverForget), {{1}, {}}, {1, 9});
  train_once(machine, 0);
  EXPECT_THAT(states(machine, 0), ElementsAre(127, 128, 127, 127));
}

// Two literals hold and are included: with a limit of one the clause, though it fires, forgets and gains no
// weight.
TEST(Machine, AClauseBeyondItsLiteralsForgets) {
  MachineOptions options = options_of(2, 4, 1);
  for (const auto& [limit, states_after, weight] : {std::tuple{1, std::vector{127, 126, 126, 127}, 1},
                                                    {2, {129, 126, 126, 129}, 2},
                                                    {0, {129, 126, 126, 129}, 2}}) {
    options.max_literals = static_cast<size_t>(limit);
    TsetlinMachine machine = machine_of(options, {{0, 3}, {}}, {1, 9});
    train_once(machine, 0);
    EXPECT_EQ(states(machine, 0), states_after) << limit;
    EXPECT_EQ(machine.weights()[0], weight) << limit;
  }
}

// A machine made of another's automata and weights goes on as the other does.
TEST(Machine, RestartTakesAutomata) {
  const MachineOptions options = options_of(4, 4, 3);
  TsetlinMachine machine(options, kTwoBits, 2);
  for (uint64_t seed = 0; seed < 20; ++seed) train_once(machine, seed % 2, seed);
  std::vector<uint8_t> automata;
  for (size_t row = 0; row < machine.votes().size(); ++row)
    automata.insert(automata.end(), machine.states(row).begin(), machine.states(row).end());
  TsetlinMachine other(options, kTwoBits, 2);
  other.restart_from(automata, machine.weights());
  for (TsetlinMachine* each : {&machine, &other}) {
    for (uint64_t seed = 20; seed < 40; ++seed) train_once(*each, seed % 2, seed);
  }
  for (size_t row = 0; row < machine.votes().size(); ++row)
    EXPECT_EQ(states(machine, row), states(other, row));
  EXPECT_EQ(machine.votes(), other.votes());
}

// A sample of class 1 teaches class 0, whose votes are at +T, what it is not.
TEST(Machine, NegativeSamplesSwapTheRoles) {
  const std::vector<std::vector<size_t>> included = {{0}, {0, 3}, {1}, {2}, {}, {}, {}, {}};
  TsetlinMachine machine = machine_of(options_of(4, 4, 1), included, {9, 1, 1, 1, 1, 1, 1, 1});
  train_once(machine, 1);
  EXPECT_THAT(states(machine, 0),
              ElementsAre(128, 128, 128, 127));  // for, fires: Type II, the included stays
  EXPECT_THAT(states(machine, 1), ElementsAre(129, 126, 126, 129));  // against, fires: Type I
  EXPECT_THAT(states(machine, 2), ElementsAre(127, 128, 127, 127));  // for, silent: nothing
  EXPECT_THAT(states(machine, 3), ElementsAre(126, 126, 127, 126));  // against, silent: Type I forgets
  EXPECT_EQ(machine.weights()[0], 8);
  EXPECT_EQ(machine.weights()[1], 2);
  EXPECT_EQ(machine.weights()[2], 1);
  EXPECT_EQ(machine.weights()[3], 1);
}

TEST(Machine, UnweightedKeepsItsWeights) {
  MachineOptions options = options_of(2, 4, 1);
  options.weighted = false;
  TsetlinMachine machine = machine_of(options, {{}, {}}, {1, 9});
  train_once(machine, 0);
  EXPECT_THAT(machine.weights(), ElementsAre(1, 9));
  EXPECT_THAT(states(machine, 1), ElementsAre(127, 128, 128, 127));
}

TEST(Machine, WeightsNeverFallBelowOne) {
  // Class 0 stands at +T = 1 with one clause of weight 1; class 1's sample gives it Type II.
  TsetlinMachine machine = machine_of(options_of(2, 1, 1), {{0}, {1}, {}, {}}, {1, 1, 1, 1});
  train_once(machine, 1);
  EXPECT_THAT(states(machine, 0), ElementsAre(128, 128, 128, 127));  // it did get the feedback
  EXPECT_EQ(machine.weights()[0], 1);
}

// The probability of feedback is (T - sum) / 2T for the class of the sample: none at sum = T.
TEST(Machine, NoFeedbackOnceTheVotesReachTheThreshold) {
  for (const int32_t weight : {5, 6, 100}) {  // sum = 4 = T, and beyond
    TsetlinMachine machine = machine_of(options_of(2, 4, 1), {{}, {}}, {weight, 1});
    for (uint64_t seed = 0; seed < 50; ++seed) train_once(machine, 0, seed);
    EXPECT_THAT(states(machine, 0), Each(127));
    EXPECT_THAT(states(machine, 1), Each(127));
    EXPECT_THAT(machine.weights(), ElementsAre(weight, 1));
  }
}

// At sum = 2 of T = 4 a clause gets feedback in a quarter of the cases.
TEST(Machine, FeedbackHasTheProbabilityOfEquationOne) {
  int taught = 0;
  constexpr int kTrials = 4000;
  for (uint64_t seed = 0; seed < kTrials; ++seed) {
    TsetlinMachine machine = machine_of(options_of(2, 4, 1), {{}, {}}, {3, 1});
    train_once(machine, 0, seed);
    taught += machine.states(0)[0] != 127 ? 1 : 0;
  }
  EXPECT_NEAR(taught, kTrials * 0.25, 5 * std::sqrt(kTrials * 0.25 * 0.75));
}

TEST(Machine, StatesSaturateAndPaddingStaysZero) {
  MachineOptions options = options_of(2, 4, 1);
  options.weighted = false;
  TsetlinMachine machine = machine_of(options, {{}, {}}, {1, 9});
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    train_once(machine, 0, seed);
    ASSERT_THAT(padding_automata(machine, 0), Each(0));
  }
  EXPECT_THAT(states(machine, 0), ElementsAre(255, 0, 0, 255));
  for (uint64_t seed = 0; seed < 50; ++seed) train_once(machine, 0, seed);
  EXPECT_THAT(states(machine, 0), ElementsAre(255, 0, 0, 255));
  EXPECT_EQ(machine.actions().row(0)[0], 0b1001u);
}

// In training it fires (the steps above); a model made of it is silent.
TEST(Machine, EmptyClausesAreSilentInPrediction) {
  const TsetlinMachine machine = machine_of(options_of(2, 4, 1), {{}, {1}, {0}, {1}}, {5, 1, 3, 1});
  BooleanizerSpec booleanizer;
  const TsetlinModel model(2, {member_of(machine, booleanizer)});
  Dataset data;
  data.name = "one image";
  data.height = 1;
  data.width = 2;
  data.channels = 1;
  data.pixels = {255, 0};
  data.labels = {0};
  data.class_names = {"a", "b"};
  ThreadPool pool(1);
  EXPECT_THAT(model.scores(data, pool), ElementsAre(0.0f, 0.75f));
}

// Forgetting happens with probability 1 / s, though the kernels draw in steps of 1 / 256.
TEST(Machine, TheMeanForgettingRateIsExact) {
  const PatchShape shape = {1, 1, 1000, 1, 1};
  constexpr size_t kClauses = 100;
  constexpr int kTrials = 40;
  const BitImages images(1, 1, 1, 1000);  // all zero: x0 does not hold
  for (const double s : {1.5, 3.0, 10.0, 100.0}) {
    TsetlinMachine machine(options_of(kClauses, 4, s), shape, 1);
    BitMatrix actions(kClauses, shape.literals());
    std::vector<int32_t> weights(kClauses, 9);  // against: empty, firing, heavy
    for (size_t clause = 0; clause < kClauses; clause += 2) {
      actions.set(clause, 0, true);  // for: ask for x0, so never fire
      weights[clause] = 1;
    }
    uint64_t forgotten = 0;
    for (uint64_t trial = 0; trial < kTrials; ++trial) {
      machine.restart_from(actions, weights);
      machine.train_epoch(images, std::vector<uint16_t>{0}, stream(4, trial));
      for (size_t clause = 0; clause < kClauses; clause += 2) {
        for (size_t literal = 0; literal < shape.literals(); ++literal) {
          forgotten += actions.get(clause, literal) + 127u - machine.states(clause)[literal];
        }
      }
    }
    const double clauses = kTrials * kClauses / 2.0;
    const double draws = clauses * static_cast<double>(shape.literals());
    const double rate = 1 / s;
    const double part = 256 / s - std::floor(256 / s);  // how often the step above is taken, a draw a clause
    const double sigma = std::sqrt(rate * (1 - rate) / draws + part * (1 - part) / 65536 / clauses);
    EXPECT_NEAR(static_cast<double>(forgotten) / draws, rate, 5 * sigma) << "s = " << s;
  }
}

// With several matching patches each is as likely to be the one that teaches.
TEST(Machine, FeedbackUsesAMatchingPatchDrawnUniformly) {
  const PatchShape shape = {1, 4, 1, 1, 1};  // x > 0, x > 1, x > 2, the pixel
  BitImages images(1, 1, 4, 1);
  for (const size_t x : {0u, 2u, 3u}) images.bits.set(0, x, true);
  std::vector<int> drawn(4);
  constexpr int kTrials = 3000;
  for (uint64_t seed = 0; seed < kTrials; ++seed) {
    TsetlinMachine machine = machine_of(options_of(2, 4, kNeverForget), {{3}, {}}, {1, 9}, shape);
    machine.train_epoch(images, std::vector<uint16_t>{0}, stream(seed));
    const auto now = machine.states(0);
    ASSERT_EQ(now[3], 129);  // the pixel is set in every patch that matches
    ++drawn[static_cast<size_t>((now[0] - 127) + (now[1] - 127) + (now[2] - 127))];
  }
  EXPECT_EQ(drawn[1], 0);
  const double sigma = std::sqrt(kTrials * (1.0 / 3) * (2.0 / 3));
  for (const size_t x : {0u, 2u, 3u}) EXPECT_NEAR(drawn[x], kTrials / 3.0, 5 * sigma) << "x = " << x;
}

TEST(Machine, RestartTakesActionsAndWeights) {
  const PatchShape shape = {4, 4, 1, 2, 2};
  RandomStream random = stream(5);
  BitMatrix actions(8, shape.literals());
  std::vector<int32_t> weights;
  for (size_t row = 0; row < actions.rows(); ++row) {
    for (size_t literal = 0; literal < shape.literals(); ++literal) {
      actions.set(row, literal, random.uniform() < 0.3);
    }
    weights.push_back(static_cast<int32_t>(row) - 2);
  }
  const Problem problem = noisy_prototypes(shape, 2, 30, 0.1);
  TsetlinMachine machine(options_of(4, 5, 3), shape, 2);
  machine.train_epoch(problem.images, problem.labels, stream(6));  // leaves nothing behind
  machine.restart_from(actions, weights);
  EXPECT_EQ(machine.actions(), actions);
  EXPECT_THAT(machine.weights(), ElementsAre(1, 1, 1, 1, 2, 3, 4, 5));
  ReferenceMachine reference(options_of(4, 5, 3), shape, 2);
  reference.weights = {1, 1, 1, 1, 2, 3, 4, 5};
  for (size_t row = 0; row < actions.rows(); ++row) {
    for (size_t literal = 0; literal < shape.literals(); ++literal) {
      reference.states[row][literal] = actions.get(row, literal) ? 128 : 127;
    }
  }
  expect_same(machine, reference);
  machine.train_epoch(problem.images, problem.labels, stream(7));
  reference.train_epoch(problem.images, problem.labels, stream(7));
  expect_same(machine, reference);
}

TEST(Machine, StopEndsTheEpochEarly) {
  const PatchShape shape = {4, 4, 1, 2, 2};
  const Problem problem = noisy_prototypes(shape, 2, 300, 0.1);
  TsetlinMachine stopped_at_once(options_of(4, 5, 3), shape, 2);
  stopped_at_once.train_epoch(problem.images, problem.labels, stream(8), [] { return true; });
  EXPECT_THAT(stopped_at_once.weights(), Each(1));
  EXPECT_THAT(states(stopped_at_once, 0), Each(127));

  TsetlinMachine whole(options_of(4, 5, 3), shape, 2);
  whole.train_epoch(problem.images, problem.labels, stream(8));
  int asked = 0;
  TsetlinMachine never(options_of(4, 5, 3), shape, 2);
  never.train_epoch(problem.images, problem.labels, stream(8), [&] { return ++asked < 0; });
  EXPECT_GE(asked, 2);
  EXPECT_EQ(never.actions(), whole.actions());
  EXPECT_EQ(never.weights(), whole.weights());

  asked = 0;
  TsetlinMachine later(options_of(4, 5, 3), shape, 2);
  later.train_epoch(problem.images, problem.labels, stream(8), [&] { return ++asked == 2; });
  EXPECT_EQ(asked, 2);  // not asked again
  EXPECT_NE(later.weights(), whole.weights());
  EXPECT_NE(later.weights(), stopped_at_once.weights());
}

TEST(Machine, IsAFunctionOfItsStream) {
  const PatchShape shape = {6, 6, 1, 3, 3};
  const Problem problem = noisy_prototypes(shape, 3, 100, 0.1);
  const auto train = [&](const RandomStream& random) {
    TsetlinMachine machine(options_of(10, 8, 3), shape, 3);
    machine.train_epoch(problem.images, problem.labels, random);
    return machine;
  };
  const TsetlinMachine first = train(stream(9));
  const TsetlinMachine second = train(stream(9));
  const TsetlinMachine other = train(stream(10));
  EXPECT_EQ(first.actions(), second.actions());
  EXPECT_EQ(first.weights(), second.weights());
  for (size_t row = 0; row < 30; ++row) EXPECT_EQ(states(first, row), states(second, row));
  EXPECT_NE(first.actions(), other.actions());
}

// The share of right answers on clean samples, by naive loops.
double accuracy(const TsetlinMachine& machine, const Problem& test) {
  const PatchShape& shape = machine.shape();
  size_t right = 0;
  for (size_t i = 0; i < test.labels.size(); ++i) {
    const auto patches = naive_patches(test.images, i, shape);
    std::vector<int64_t> sums(machine.class_count());
    for (size_t row = 0; row < machine.weights().size(); ++row) {
      bool empty = true;
      for (size_t literal = 0; literal < shape.literals(); ++literal)
        empty &= !machine.actions().get(row, literal);
      if (empty) continue;
      const bool fires = std::any_of(patches.begin(), patches.end(), [&](const std::vector<bool>& patch) {
        return naive_match(patch, [&](size_t literal) { return machine.actions().get(row, literal); });
      });
      const int64_t vote = fires ? machine.weights()[row] : 0;
      sums[row / machine.options().clauses] += row % machine.options().clauses % 2 == 0 ? vote : -vote;
    }
    const auto best = std::max_element(sums.begin(), sums.end()) - sums.begin();
    right += best == test.labels[i] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(test.labels.size());
}

// Twelve random bits; the class is x0 xor x1, told wrongly for some of the samples.
Problem noisy_xor(size_t count, double noise, uint64_t seed) {
  RandomStream random = stream(seed);
  const PatchShape shape = {1, 1, 12, 1, 1};
  Problem problem{random_images(count, shape, random), {}};
  for (size_t i = 0; i < count; ++i) {
    const bool label = problem.images.bits.get(i, 0) != problem.images.bits.get(i, 1);
    problem.labels.push_back(label != (random.uniform() < noise) ? 1 : 0);
  }
  return problem;
}

// Six by six random bits; class 1 has the pattern 10 / 01 somewhere, class 0 nowhere.
Problem noisy_diagonals(size_t count, double noise, uint64_t seed) {
  RandomStream random = stream(seed);
  const PatchShape shape = {6, 6, 1, 2, 2};
  Problem problem{BitImages(count, 6, 6, 1), {}};
  for (size_t i = 0; i < count; ++i) {
    const bool wanted = i % 2 == 1;
    for (bool found = !wanted; found != wanted;) {
      const BitImages image = random_images(1, shape, random, 0.3);
      found = false;
      for (size_t y = 0; y < 5; ++y) {
        for (size_t x = 0; x < 5; ++x) {
          found |= image.bits.get(y, x) && !image.bits.get(y, x + 1) && !image.bits.get(y + 1, x) &&
                   image.bits.get(y + 1, x + 1);
        }
      }
      for (size_t y = 0; y < 6; ++y) problem.images.bits.row(i * 6 + y)[0] = image.bits.row(y)[0];
    }
    problem.labels.push_back(wanted != (random.uniform() < noise) ? 1 : 0);
  }
  return problem;
}

Problem sorted_by_class(const Problem& problem) {
  std::vector<size_t> order(problem.labels.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return problem.labels[a] < problem.labels[b]; });
  const BitImages& images = problem.images;
  Problem sorted{BitImages(images.count, images.height, images.width, images.planes), {}};
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t y = 0; y < images.height; ++y) {
      std::copy_n(images.row(order[i], y), images.bits.stride(),
                  sorted.images.bits.row(i * images.height + y));
    }
    sorted.labels.push_back(problem.labels[order[i]]);
  }
  return sorted;
}

double learn(const Problem& train, const Problem& test, const MachineOptions& options,
             const PatchShape& shape, uint64_t epochs) {
  TsetlinMachine machine(options, shape, 2);
  for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
    machine.train_epoch(train.images, train.labels, stream(11, epoch));
  }
  return accuracy(machine, test);
}

TEST(Machine, LearnsNoisyXorSortedOrNot) {
  const Problem train = noisy_xor(4000, 0.2, 12);
  const Problem test = noisy_xor(1000, 0, 13);
  const PatchShape shape = {1, 1, 12, 1, 1};
  const double shuffled = learn(train, test, options_of(20, 15, 3.9), shape, 20);
  const double sorted = learn(sorted_by_class(train), test, options_of(20, 15, 3.9), shape, 20);
  RecordProperty("shuffled", std::to_string(shuffled));
  RecordProperty("sorted", std::to_string(sorted));
  EXPECT_GT(shuffled, 0.95);
  EXPECT_GT(sorted, 0.95);
}

TEST(Machine, LearnsAPatternWhereverItIsSortedOrNot) {
  const Problem train = noisy_diagonals(3000, 0.05, 14);
  const Problem test = noisy_diagonals(500, 0, 15);
  const PatchShape shape = {6, 6, 1, 2, 2};
  const double shuffled = learn(train, test, options_of(40, 40, 6), shape, 20);
  const double sorted = learn(sorted_by_class(train), test, options_of(40, 40, 6), shape, 20);
  RecordProperty("shuffled", std::to_string(shuffled));
  RecordProperty("sorted", std::to_string(sorted));
  EXPECT_GT(shuffled, 0.95);
  EXPECT_GT(sorted, 0.95);
}

}  // namespace
}  // namespace bitfed
