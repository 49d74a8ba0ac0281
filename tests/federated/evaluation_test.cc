#include "bitfed/federated/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <numeric>

namespace bitfed {
namespace {

// A table whose one value is the sample's number; three classes.
Dataset numbered(size_t count) {
  Dataset dataset;
  dataset.name = "numbered";
  dataset.columns = {"number"};
  dataset.class_names = {"a", "b", "c"};
  for (size_t i = 0; i < count; ++i) {
    dataset.values.push_back(static_cast<float>(i));
    dataset.labels.push_back(static_cast<uint16_t>(i % 3));
  }
  return dataset;
}

// Predicts the class that the sample's value names.
struct ValueModel : Model {
  std::vector<float> scores(const Dataset& dataset, ThreadPool&) const override {
    std::vector<float> result(3 * dataset.size());
    for (size_t i = 0; i < dataset.size(); ++i) result[3 * i + static_cast<size_t>(dataset.row(i)[0])] = 1;
    return result;
  }
  void check_fits(const Dataset&) const override {}
  std::unique_ptr<Predictor> predictor() const override { return nullptr; }
  size_t class_count() const override { return 3; }
  State state() const override { return {}; }
  ModelCosts costs() const override { return {}; }
};

struct Cut {
  size_t all;
  size_t validation;
};

// Whole batches of 32: half of 10,000 is 156.25 of them, half of 26,032 is 406.75.
TEST(EvaluationTest, SecondHalf) {
  for (const Cut cut : {Cut{10000, 4992}, Cut{26032, 13024}, Cut{64, 32}, Cut{96, 64}, Cut{95, 32},
                        Cut{31, 0}, Cut{32, 32}, Cut{0, 0}}) {
    const EvaluationData data = evaluation_data(numbered(cut.all), "second-half");
    ASSERT_EQ(data.validation.size(), cut.validation) << cut.all;
    ASSERT_EQ(data.test.size(), cut.all - cut.validation) << cut.all;
    for (size_t i = 0; i < cut.validation; ++i) ASSERT_EQ(data.validation.values[i], static_cast<float>(i));
    for (size_t i = cut.validation; i < cut.all; ++i) {
      ASSERT_EQ(data.test.values[i - cut.validation], static_cast<float>(i));
      ASSERT_EQ(data.test.labels[i - cut.validation], i % 3);
    }
  }
}

// Of the classes 0 1 2 0 1 2 0 the first half is 0 1 2: one of three, of two and of two.
TEST(EvaluationTest, StratifiedHalf) {
  const EvaluationData data = evaluation_data(numbered(7), "stratified-half");
  EXPECT_EQ(data.validation.values, (std::vector<float>{0, 1, 2}));
  EXPECT_EQ(data.test.values, (std::vector<float>{3, 4, 5, 6}));
}

TEST(EvaluationTest, ASortedTestSetLosesClassesInItsSecondHalf) {
  Dataset sorted = numbered(96);
  std::sort(sorted.labels.begin(), sorted.labels.end());
  sorted.class_names = {"a", "b", "c"};
  const std::vector<uint16_t> labels = sorted.labels;
  EXPECT_EQ(classes_left_out(labels, evaluation_data(sorted, "second-half").test), "a, b");
  EXPECT_EQ(classes_left_out(labels, evaluation_data(sorted, "stratified-half").test), "");
}

// Recall 1/3, 1/2, 2/3. F1 2/(3+2), 2/(2+3), 4/(3+3). A class that never occurs counts only once predicted.
TEST(EvaluationTest, ScoresByClassByHand) {
  const std::vector<std::vector<uint64_t>> confusion = {{1, 2, 0}, {0, 1, 1}, {1, 0, 2}};
  EXPECT_DOUBLE_EQ(balanced_accuracy(confusion), (1.0 / 3 + 1.0 / 2 + 2.0 / 3) / 3);
  EXPECT_DOUBLE_EQ(macro_f1(confusion), (2.0 / 5 + 2.0 / 5 + 4.0 / 6) / 3);
  EXPECT_DOUBLE_EQ(balanced_accuracy({{9, 1}, {0, 0}}), 0.9);
  EXPECT_DOUBLE_EQ(macro_f1({{9, 1}, {0, 0}}), (18.0 / 19 + 0) / 2);
  EXPECT_DOUBLE_EQ(macro_f1({{10, 0}, {0, 0}}), 1);
  EXPECT_DOUBLE_EQ(macro_f1({{0, 0}, {0, 0}}), 0);
}

TEST(EvaluationTest, All) {
  const EvaluationData data = evaluation_data(numbered(100), "all");
  EXPECT_EQ(data.test.size(), 100u);
  EXPECT_EQ(data.validation.size(), 0u);
}

Dataset judged(const std::vector<uint16_t>& labels, const std::vector<float>& predicted) {
  Dataset dataset = numbered(0);
  dataset.labels = labels;
  dataset.values = predicted;
  return dataset;
}

TEST(EvaluationTest, ConfusionByHand) {
  ThreadPool pool(2);
  const EvaluationData data{judged({0, 0, 0, 1, 1, 2, 2, 2}, {0, 1, 1, 1, 2, 2, 2, 0}),
                            judged({1, 2}, {1, 0})};
  const Evaluation evaluation = evaluate_model(ValueModel(), data, pool);
  EXPECT_EQ(evaluation.confusion_matrix,
            (std::vector<std::vector<uint64_t>>{{1, 2, 0}, {0, 1, 1}, {1, 0, 2}}));
  EXPECT_EQ(evaluation.scores.accuracy, 4.0 / 8);
  EXPECT_EQ(evaluation.scores.f1_micro, 4.0 / 8);
  EXPECT_EQ(evaluation.scores.validation_accuracy, 1.0 / 2);
}

TEST(EvaluationTest, WithoutValidationData) {
  ThreadPool pool(1);
  const Evaluation evaluation = evaluate_model(ValueModel(), {judged({2}, {2}), judged({}, {})}, pool);
  EXPECT_EQ(evaluation.scores.accuracy, 1.0);
  EXPECT_EQ(evaluation.scores.validation_accuracy, std::nullopt);
}

}  // namespace
}  // namespace bitfed
