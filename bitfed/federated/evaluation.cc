#include "bitfed/federated/evaluation.h"

#include <algorithm>
#include <numeric>

namespace bitfed {
namespace {

using Confusion = std::vector<std::vector<uint64_t>>;

Confusion confusion_matrix(const Model& model, const Dataset& dataset, ThreadPool& pool) {
  Confusion confusion(model.class_count(), std::vector<uint64_t>(model.class_count()));
  const std::vector<uint16_t> predicted = predict(model, dataset, pool);
  for (size_t i = 0; i < predicted.size(); ++i) ++confusion[dataset.labels[i]][predicted[i]];
  return confusion;
}

double accuracy(const Confusion& confusion) {
  uint64_t right = 0;
  uint64_t all = 0;
  for (size_t label = 0; label < confusion.size(); ++label) {
    right += confusion[label][label];
    all += std::accumulate(confusion[label].begin(), confusion[label].end(), uint64_t{0});
  }
  return all == 0 ? 0 : static_cast<double>(right) / static_cast<double>(all);
}

Dataset range(const Dataset& dataset, size_t begin, size_t end) {
  std::vector<uint32_t> indices(end - begin);
  std::iota(indices.begin(), indices.end(), static_cast<uint32_t>(begin));
  return subset(dataset, indices);
}

}  // namespace

EvaluationData evaluation_data(Dataset test, const std::string& evaluate) {
  if (evaluate == "all") {
    Dataset none = subset(test, {});
    return {std::move(test), std::move(none)};
  }
  // 4,992 of MNIST's 10,000, 13,024 of SVHN's 26,032.
  const size_t half = std::min(test.size(), (test.size() + 32) / 64 * 32);
  return {range(test, half, test.size()), range(test, 0, half)};
}

Evaluation evaluate_model(const Model& model, const EvaluationData& data, ThreadPool& pool) {
  Evaluation evaluation;
  evaluation.confusion_matrix = confusion_matrix(model, data.test, pool);
  Scores& scores = evaluation.scores;
  scores.accuracy = accuracy(evaluation.confusion_matrix);
  if (data.validation.size() > 0)
    scores.validation_accuracy = accuracy(confusion_matrix(model, data.validation, pool));
  // Every sample has one label and gets one prediction: micro-averaged precision and recall are the accuracy.
  scores.f1_micro = scores.accuracy;
  return evaluation;
}

}  // namespace bitfed
