#include "bitfed/model/model.h"

#include <algorithm>

#include "bitfed/model/largest_scores.h"

namespace bitfed {

std::vector<float> Model::scores(const Dataset& dataset, ThreadPool& pool) const {
  check_fits(dataset);
  const SampleShape shape = shape_of(dataset);
  const Samples samples = samples_of(dataset);
  std::vector<float> scores(dataset.size() * class_count());
  PredictorPool predictors(predictor());
  pool.for_ranges(dataset.size(), prediction_share(dataset.size(), pool), [&](size_t begin, size_t end) {
    predictors.lease()->predict(samples.part(shape, begin, end - begin), &scores[begin * class_count()]);
  });
  return scores;
}

// About four tasks per thread balance the load; small tasks would lose the benefit of blocks.
size_t prediction_share(size_t samples, const ThreadPool& pool) {
  constexpr size_t kMin = 256;
  return std::max(kMin, samples / (4 * pool.size()) + 1);
}

void largest_scores(const float* scores, size_t samples, size_t classes, uint16_t* labels) {
  for (size_t i = 0; i < samples; ++i, scores += classes)
    labels[i] = static_cast<uint16_t>(std::max_element(scores, scores + classes) - scores);
}

std::vector<uint16_t> largest_scores(const std::vector<float>& scores, size_t classes) {
  std::vector<uint16_t> labels(scores.size() / classes);
  largest_scores(scores.data(), labels.size(), classes, labels.data());
  return labels;
}

std::vector<uint16_t> predict(const Model& model, const Dataset& dataset, ThreadPool& pool) {
  return largest_scores(model.scores(dataset, pool), model.class_count());
}

}  // namespace bitfed
