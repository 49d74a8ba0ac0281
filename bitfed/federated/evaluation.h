#pragma once

#include <string>
#include <vector>

#include "bitfed/base/thread_pool.h"
#include "bitfed/data/dataset.h"
#include "bitfed/model/model.h"
#include "bitfed/run/events.h"

namespace bitfed {

// What a model is evaluated on. "second-half" is how the FedTMOS paper tests: the first half of the test
// set, rounded to whole batches of 32, is for choosing (validation), the rest for the reported accuracy. Of a
// test set that is sorted by class this leaves half of the classes. "stratified-half" halves each class by
// itself, in the order of the file; the odd sample is for the reported accuracy.
struct EvaluationData {
  Dataset test;
  Dataset validation;  // no samples: none
};

// The names that `evaluate` may have.
const std::vector<std::string>& evaluation_kinds();

EvaluationData evaluation_data(Dataset test, const std::string& evaluate);

// "0, 1, 2", the classes that are among `labels` and have no sample in `part`; empty: none.
std::string classes_left_out(const std::vector<uint16_t>& labels, const Dataset& part);

struct Evaluation {
  Scores scores;
  std::vector<std::vector<uint64_t>> confusion_matrix = {};  // [true][predicted], of the test data

  // In the order of checkpoints.
  static void fields(auto& self, auto& field) {
    field("accuracy", self.scores.accuracy);
    field("validation_accuracy", self.scores.validation_accuracy);
    field("f1_micro", self.scores.f1_micro);
    field("confusion_matrix", self.confusion_matrix);
    field("local_accuracy_mean", self.scores.local_accuracy_mean);
  }
  bool operator==(const Evaluation&) const = default;
};

using Confusion = std::vector<std::vector<uint64_t>>;  // [true][predicted]
Confusion confusion_matrix(const Model& model, const Dataset& dataset, ThreadPool& pool);

// From the matrices on test and validation data; the second is empty where there is none.
Evaluation evaluation_of(Confusion test, const Confusion& validation);

// Of a confusion matrix [true][predicted]; 0 where it counts nothing. The mean recall of the classes that
// have samples, and the mean F1 of the classes that have samples or were predicted (both as in scikit-learn).
double balanced_accuracy(const Confusion& confusion);
double macro_f1(const Confusion& confusion);

// All but the accuracy of the clients' own models.
Evaluation evaluate_model(const Model& model, const EvaluationData& data, ThreadPool& pool);

}  // namespace bitfed
