#include "bitfed/federated/evaluation.h"

#include <algorithm>
#include <numeric>

#include "bitfed/base/names.h"

namespace bitfed {
namespace {

// Of one class: its samples, and how often it was predicted.
struct ClassTally {
  double right = 0;
  double samples = 0;
  double predicted = 0;
};

std::vector<ClassTally> counts_by_class(const Confusion& confusion) {
  std::vector<ClassTally> counts(confusion.size());
  for (size_t label = 0; label < confusion.size(); ++label) {
    counts[label].right = static_cast<double>(confusion[label][label]);
    for (size_t predicted = 0; predicted < confusion.size(); ++predicted) {
      counts[label].samples += static_cast<double>(confusion[label][predicted]);
      counts[predicted].predicted += static_cast<double>(confusion[label][predicted]);
    }
  }
  return counts;
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

// The first half of each class, and the other samples; both in the order of the file.
EvaluationData halve_classes(const Dataset& test) {
  std::vector<size_t> left(test.class_count());
  for (const uint16_t label : test.labels) ++left[label];
  for (size_t& count : left) count /= 2;
  std::vector<uint32_t> validation;
  std::vector<uint32_t> rest;
  for (uint32_t i = 0; i < test.size(); ++i) {
    size_t& count = left[test.labels[i]];
    (count > 0 ? validation : rest).push_back(i);
    if (count > 0) --count;
  }
  return {subset(test, rest), subset(test, validation)};
}

}  // namespace

const std::vector<std::string>& evaluation_kinds() {
  static const std::vector<std::string> kKinds = {"all", "second-half", "stratified-half"};
  return kKinds;
}

std::string classes_left_out(const std::vector<uint16_t>& labels, const Dataset& part) {
  std::vector<bool> missing(part.class_count());
  for (const uint16_t label : labels) missing[label] = true;
  for (const uint16_t label : part.labels) missing[label] = false;
  std::vector<std::string> names;
  for (size_t label = 0; label < missing.size(); ++label) {
    if (missing[label]) names.push_back(part.class_names[label]);
  }
  return joined(names);
}

EvaluationData evaluation_data(Dataset test, const std::string& evaluate) {
  if (evaluate == "all") {
    Dataset none = subset(test, {});
    return {std::move(test), std::move(none)};
  }
  if (evaluate == "stratified-half") return halve_classes(test);
  // 4,992 of MNIST's 10,000, 13,024 of SVHN's 26,032.
  const size_t half = std::min(test.size(), (test.size() + 32) / 64 * 32);
  return {range(test, half, test.size()), range(test, 0, half)};
}

double balanced_accuracy(const Confusion& confusion) {
  double sum = 0;
  size_t classes = 0;
  for (const ClassTally& counts : counts_by_class(confusion)) {
    if (counts.samples == 0) continue;
    sum += counts.right / counts.samples;
    ++classes;
  }
  return classes == 0 ? 0 : sum / static_cast<double>(classes);
}

double macro_f1(const Confusion& confusion) {
  double sum = 0;
  size_t classes = 0;
  for (const ClassTally& counts : counts_by_class(confusion)) {
    if (counts.samples + counts.predicted == 0) continue;
    sum += 2 * counts.right / (counts.samples + counts.predicted);
    ++classes;
  }
  return classes == 0 ? 0 : sum / static_cast<double>(classes);
}

Confusion confusion_matrix(const Model& model, const Dataset& dataset, ThreadPool& pool) {
  Confusion confusion(model.class_count(), std::vector<uint64_t>(model.class_count()));
  const std::vector<uint16_t> predicted = predict(model, dataset, pool);
  for (size_t i = 0; i < predicted.size(); ++i) ++confusion[dataset.labels[i]][predicted[i]];
  return confusion;
}

Evaluation evaluation_of(Confusion test, const Confusion& validation) {
  Evaluation evaluation;
  Scores& scores = evaluation.scores;
  scores.accuracy = accuracy(test);
  if (!validation.empty()) scores.validation_accuracy = accuracy(validation);
  // Every sample has one label and gets one prediction: micro-averaged precision and recall are the accuracy.
  scores.f1_micro = scores.accuracy;
  evaluation.confusion_matrix = std::move(test);
  return evaluation;
}

Evaluation evaluate_model(const Model& model, const EvaluationData& data, ThreadPool& pool) {
  return evaluation_of(
      confusion_matrix(model, data.test, pool),
      data.validation.size() > 0 ? confusion_matrix(model, data.validation, pool) : Confusion());
}

}  // namespace bitfed
