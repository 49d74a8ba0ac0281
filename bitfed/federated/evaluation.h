#pragma once

#include <string>
#include <vector>

#include "bitfed/base/thread_pool.h"
#include "bitfed/data/dataset.h"
#include "bitfed/model/model.h"
#include "bitfed/run/events.h"

namespace bitfed {

// What a model is evaluated on. "second-half" is how the FedTMOS paper tests: the first half of the test
// set, rounded to whole batches of 32, is for choosing (validation), the rest for the reported accuracy.
struct EvaluationData {
  Dataset test;
  Dataset validation;  // no samples: none
};

EvaluationData evaluation_data(Dataset test, const std::string& evaluate);

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

// All but the accuracy of the clients' own models.
Evaluation evaluate_model(const Model& model, const EvaluationData& data, ThreadPool& pool);

}  // namespace bitfed
