#include "bitfed/federated/personal_evaluation.h"

#include <gtest/gtest.h>

#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

// Says the same class of every sample.
class Constant : public Model {
 public:
  explicit Constant(size_t label, int* asked = nullptr) : label_(label), asked_(asked) {}
  std::vector<float> scores(const Dataset& dataset, ThreadPool& /*pool*/) const override {
    if (asked_ != nullptr) ++*asked_;
    std::vector<float> scores(2 * dataset.size());
    for (size_t i = 0; i < dataset.size(); ++i) scores[2 * i + label_] = 1;
    return scores;
  }
  void check_fits(const Dataset& /*dataset*/) const override {}
  std::unique_ptr<Predictor> predictor() const override { return nullptr; }
  size_t class_count() const override { return 2; }
  State state() const override { return {}; }
  ModelCosts costs() const override { return {}; }

 private:
  size_t label_;
  int* asked_;
};

class Half : public ClientHalf {
 public:
  State train(const State&, const Dataset&, const ClientContext&) const override { return {}; }
  std::unique_ptr<Model> personal_model(const State& kept) const override {
    return std::make_unique<Constant>(kept.scalar<uint8_t>("label"), asked);
  }
  int* asked = nullptr;  // counts the predictions of personal models
};

Bytes keeps(uint8_t label) {
  State state;
  state.add_scalar("label", label);
  return encode(state);
}

class PersonalEvaluationTest : public testing::Test {
 protected:
  // Ann, Bob and Cem have two training samples each; Ann is tested on 0 0 1 1, Bob on 1, Cem on nothing.
  PersonalEvaluationTest() {
    for (Dataset* data : {&train_, &test_}) {
      data->columns = {"x"};
      data->class_names = {"no", "yes"};
      data->group_names = {"ann", "bob", "cem"};
    }
    for (uint32_t i = 0; i < 6; ++i) add(&train_, i / 2, 0);
    for (const uint16_t label : {0, 0, 1, 1}) add(&test_, 0, label);
    add(&test_, 1, 1);
  }

  static void add(Dataset* data, uint32_t group, uint16_t label) {
    data->values.push_back(0);
    data->groups.push_back(group);
    data->labels.push_back(label);
  }

  Dataset train_, test_;
  Partition partition_ = {{0, 1}, {2, 3}, {4, 5}};
  TemporaryFolder folder_;
  ClientStates states_{folder_.path(), 3};
  Half half_;
  ThreadPool pool_{1};
};

TEST_F(PersonalEvaluationTest, EveryoneOnTheirOwnSamples) {
  states_.put(0, keeps(0));
  states_.put(1, keeps(1));
  states_.put(2, keeps(1));
  PersonalEvaluation personal(train_, partition_, true, test_);
  EXPECT_EQ(personal.mean_accuracy(half_, states_, pool_), (0.5 + 1) / 2);  // Cem is not tested
  const std::vector<ClientAccuracy> expected = {
      {0, "ann", 2, 4, 0.5, 0.5}, {1, "bob", 2, 1, 1.0, 1.0}, {2, "cem", 2, 0, std::nullopt, std::nullopt}};
  EXPECT_EQ(personal.table(Constant(1), half_, states_, pool_), expected);
}

TEST_F(PersonalEvaluationTest, WhoNeverTookPartHasNoModel) {
  states_.put(1, keeps(0));
  PersonalEvaluation personal(train_, partition_, true, test_);
  EXPECT_EQ(personal.mean_accuracy(half_, states_, pool_), 0.0);
  const std::vector<ClientAccuracy> table = personal.table(Constant(1), half_, states_, pool_);
  EXPECT_EQ(table[0].local_accuracy, std::nullopt);
  EXPECT_EQ(table[0].global_accuracy, 0.5);
}

// Where clients are no persons, everyone is judged on all samples, and the global model once.
TEST_F(PersonalEvaluationTest, WithoutPersonsOnAllSamples) {
  for (uint32_t client = 0; client < 3; ++client) states_.put(client, keeps(0));
  PersonalEvaluation personal(train_, partition_, false, test_);
  int asked = 0;
  const std::vector<ClientAccuracy> table = personal.table(Constant(1, &asked), half_, states_, pool_);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(table[2].global_accuracy, 0.6);
  EXPECT_EQ(table[2].local_accuracy, 0.4);
  EXPECT_EQ(table[2].name, std::nullopt);
}

// A personal model changes only when its client trains: the others are not evaluated again in every round.
TEST_F(PersonalEvaluationTest, OnlyChangedModelsAreEvaluatedAgain) {
  int asked = 0;
  half_.asked = &asked;
  PersonalEvaluation personal(train_, partition_, true, test_);
  states_.put(0, keeps(0));
  states_.put(1, keeps(1));
  EXPECT_EQ(personal.mean_accuracy(half_, states_, pool_), 0.75);
  EXPECT_EQ(asked, 2);
  states_.put(1, keeps(0));
  EXPECT_EQ(personal.mean_accuracy(half_, states_, pool_), 0.25);
  EXPECT_EQ(asked, 3);
  personal.mean_accuracy(half_, states_, pool_);
  EXPECT_EQ(personal.table(Constant(1), half_, states_, pool_)[1].local_accuracy, 0.0);
  EXPECT_EQ(asked, 3);
}

// After --resume everyone's model is evaluated once.
TEST_F(PersonalEvaluationTest, RestoredModelsAreEvaluated) {
  states_.put(0, keeps(0));
  states_.put(1, keeps(1));
  const std::vector<uint32_t> needed = states_.save(1);
  states_.write_saved();
  ClientStates restored(folder_.path(), 3);
  restored.restore(1, needed);
  PersonalEvaluation personal(train_, partition_, true, test_);
  EXPECT_EQ(personal.mean_accuracy(half_, restored, pool_), 0.75);
}

// Many threads evaluate what one does.
TEST_F(PersonalEvaluationTest, ThreadsDoNotChangeTheMean) {
  for (uint32_t client = 0; client < 3; ++client) states_.put(client, keeps(1));
  ThreadPool four(4);
  PersonalEvaluation one(train_, partition_, false, test_);
  PersonalEvaluation many(train_, partition_, false, test_);
  EXPECT_EQ(one.mean_accuracy(half_, states_, pool_), many.mean_accuracy(half_, states_, four));
}

// Methods without personal models: nothing is evaluated.
TEST_F(PersonalEvaluationTest, NoneKeptNothingToDo) {
  PersonalEvaluation personal(train_, partition_, true, test_);
  int asked = 0;
  EXPECT_TRUE(personal.table(Constant(1, &asked), half_, states_, pool_).empty());
  EXPECT_EQ(personal.mean_accuracy(half_, states_, pool_), std::nullopt);
  EXPECT_EQ(asked, 0);
}

}  // namespace
}  // namespace bitfed
