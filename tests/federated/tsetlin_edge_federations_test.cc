// Federations at the edge of what makes sense, for every Tsetlin method: flat machines, composites of
// convolutional ones, and tables.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/federated/hand_made.h"

namespace bitfed {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr size_t kClasses = 4;
constexpr size_t kWidth = 8;

const std::vector<std::string>& tsetlin_methods() {
  static const std::vector<std::string> kNames = {"fedtm-bank", "fedtmos", "fedtmos-ensemble",
                                                  "fedtm-largest", "fedtm"};
  return kNames;
}

struct Kind {
  const char* name;
  const char* model;  // of the recipe
  bool is_table;
};

constexpr const char* kFlat = "[model]\nname = \"tm\"\nclauses = 20\nthreshold = 20\nsensitivity = 3\n";
constexpr const char* kComposite =
    "[model]\nname = \"ctm-composite\"\n"
    "[[model.member]]\nclauses = 20\nthreshold = 20\nsensitivity = 3\npatch = [1, 6]\n"
    "[[model.member]]\nclauses = 10\nthreshold = 20\nsensitivity = 3\npatch = [1, 8]\n";
constexpr Kind kKinds[] = {{"Flat", kFlat, false}, {"Composite", kComposite, false}, {"Table", kFlat, true}};

// The same bits as columns.
Dataset as_table(const Dataset& images) {
  Dataset table;
  table.name = images.name;
  table.class_names = images.class_names;
  table.labels = images.labels;
  for (size_t x = 0; x < kWidth; ++x) table.columns.push_back(std::to_string(x));
  for (const uint8_t pixel : images.pixels) table.values.push_back(pixel > 0 ? 1.0f : 0.0f);
  return table;
}

class TsetlinEdgeFederationsTest : public testing::TestWithParam<Kind> {
 protected:
  Dataset samples_of(const std::vector<uint16_t>& labels, size_t count, uint64_t seed) const;
  // fedtm: three rounds. The others: one, or two, of which the second fits a number per class.
  std::unique_ptr<Model> federate(const std::string& name, const std::vector<Dataset>& clients,
                                  std::vector<std::string>* notes = nullptr, uint32_t rounds = 1) const;
  // The accuracy on samples of all classes. Scores must be finite and predictions among `held`.
  double accuracy(const Model& model, const std::set<uint16_t>& held) const;
};

INSTANTIATE_TEST_SUITE_P(Kinds, TsetlinEdgeFederationsTest, testing::ValuesIn(kKinds),
                         [](const auto& kind) { return std::string(kind.param.name); });

// Samples of these classes in turns: pixel `label` is set and the other three of the first half are not; the
// second half is random.
Dataset TsetlinEdgeFederationsTest::samples_of(const std::vector<uint16_t>& labels, size_t count,
                                               uint64_t seed) const {
  RandomStream random({seed, "edge-federations"});
  std::vector<std::vector<int>> pixels;
  std::vector<uint16_t> of_sample;
  for (size_t i = 0; i < count; ++i) {
    const uint16_t label = labels[i % labels.size()];
    std::vector<int>& image = pixels.emplace_back(kWidth);
    image[label] = 1;
    for (size_t x = kClasses; x < kWidth; ++x) image[x] = random.below(2) == 0 ? 0 : 1;
    of_sample.push_back(label);
  }
  Dataset samples = hand_made::images(kWidth, kClasses, pixels);
  samples.labels = of_sample;
  return GetParam().is_table ? as_table(samples) : samples;
}

std::unique_ptr<Model> TsetlinEdgeFederationsTest::federate(const std::string& name,
                                                            const std::vector<Dataset>& clients,
                                                            std::vector<std::string>* notes,
                                                            uint32_t rounds) const {
  const auto method = hand_made::method_of(
      std::string(GetParam().model) + "[client]\nepochs = 20\n[method]\nname = \"" + name + "\"\n",
      samples_of({}, 0, 0));
  const auto client_half = method->make_client();
  const auto server = method->make_server();
  for (uint32_t round = server->needs_preparation() ? 0 : 1; round <= (name == "fedtm" ? 3u : rounds);
       ++round) {
    const State broadcast = server->broadcast(round);
    for (uint32_t client = 0; client < clients.size(); ++client) {
      const ClientContext context{RandomStream({0, "client", round, client}), {}, {}, {}};
      server->accept(client, client_half->train(broadcast, clients[client], context));
    }
    server->finish_round(round);
  }
  if (notes != nullptr) *notes = server->notes();
  return server->model();
}

double TsetlinEdgeFederationsTest::accuracy(const Model& model, const std::set<uint16_t>& held) const {
  ThreadPool pool(1);
  const Dataset test = samples_of({0, 1, 2, 3}, 400, 99);
  for (const float score : model.scores(test, pool)) EXPECT_TRUE(std::isfinite(score));
  const std::vector<uint16_t> predicted = predict(model, test, pool);
  size_t right = 0;
  for (size_t i = 0; i < predicted.size(); ++i) {
    EXPECT_TRUE(held.contains(predicted[i])) << predicted[i];
    right += predicted[i] == test.labels[i] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(predicted.size());
}

TEST_P(TsetlinEdgeFederationsTest, OneClient) {
  for (const std::string& name : tsetlin_methods()) {
    SCOPED_TRACE(name);
    EXPECT_GT(accuracy(*federate(name, {samples_of({0, 1, 2, 3}, 200, 1)}), {0, 1, 2, 3}), 0.95);
  }
}

TEST_P(TsetlinEdgeFederationsTest, AClassThatNobodyHolds) {
  for (const std::string& name : tsetlin_methods()) {
    SCOPED_TRACE(name);
    const std::vector<Dataset> clients = {samples_of({0, 1}, 100, 1), samples_of({1, 3}, 100, 2),
                                          samples_of({0, 3}, 100, 3)};
    EXPECT_GT(accuracy(*federate(name, clients), {0, 1, 3}), 0.7);  // 0.75 is all that can be right
  }
}

// Nobody has seen what its class is not.
TEST_P(TsetlinEdgeFederationsTest, OneClassEach) {
  for (const std::string& name : tsetlin_methods()) {
    SCOPED_TRACE(name);
    std::vector<Dataset> clients;
    for (const uint16_t label : {0, 1, 2, 3}) clients.push_back(samples_of({label}, 50, label));
    EXPECT_GT(accuracy(*federate(name, clients), {0, 1, 2, 3}), 0.7);
  }
}

// Twelve clients with a sample each: their clauses know three of the sixteen samples of a class by heart, and
// all methods say that this is too little.
TEST_P(TsetlinEdgeFederationsTest, OneSampleEach) {
  for (const std::string& name : tsetlin_methods()) {
    SCOPED_TRACE(name);
    std::vector<Dataset> clients;
    for (uint16_t i = 0; i < 12; ++i) clients.push_back(samples_of({static_cast<uint16_t>(i % 4)}, 1, i));
    std::vector<std::string> notes;
    EXPECT_GT(accuracy(*federate(name, clients, &notes), {0, 1, 2, 3}), 0.3);
    EXPECT_THAT(notes, Contains(AllOf(HasSubstr("class '2' has 3 samples"), HasSubstr("too few to trust"))));
  }
}

// A second round of the one-shot methods leaves what holds above as it is.
TEST_P(TsetlinEdgeFederationsTest, ASecondRound) {
  for (const std::string& name : tsetlin_methods()) {
    if (name == "fedtm") continue;
    SCOPED_TRACE(name);
    const auto fitted = [&](const std::vector<Dataset>& clients) {
      return federate(name, clients, nullptr, 2);
    };
    EXPECT_GT(accuracy(*fitted({samples_of({0, 1, 2, 3}, 200, 1)}), {0, 1, 2, 3}), 0.95);
    EXPECT_GT(accuracy(*fitted({samples_of({0, 1}, 100, 1), samples_of({1, 3}, 100, 2),
                                samples_of({0, 3}, 100, 3)}),
                       {0, 1, 3}),
              0.7);
    std::vector<Dataset> single;
    std::vector<Dataset> tiny;
    for (uint16_t i = 0; i < 12; ++i) {
      if (i < 4) single.push_back(samples_of({i}, 50, i));
      tiny.push_back(samples_of({static_cast<uint16_t>(i % 4)}, 1, i));
    }
    EXPECT_GT(accuracy(*fitted(single), {0, 1, 2, 3}), 0.7);
    EXPECT_GT(accuracy(*fitted(tiny), {0, 1, 2, 3}), 0.3);
  }
}

}  // namespace
}  // namespace bitfed
