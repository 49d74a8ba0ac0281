#pragma once

#include <string>
#include <vector>

#include "bitfed/base/thread_pool.h"
#include "bitfed/data/dataset.h"
#include "bitfed/run/events.h"
#include "bitfed/model/model.h"

namespace bitfed {

// What a model is judged on. "second-half" is how the FedTMOS paper tests: the first half of the test
// set, rounded to whole batches of 32, is for choosing (validation), the rest for the figure.
struct EvaluationData {
  Dataset test;
  Dataset validation;  // no samples: none
};

EvaluationData evaluation_data(Dataset test, const std::string& evaluate);

// accuracy, validation_accuracy (null without validation data), f1_micro, confusion_matrix [true][predicted].
Event evaluate_model(const Model& model, const EvaluationData& data, ThreadPool& pool);

}  // namespace bitfed
