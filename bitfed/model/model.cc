#include "bitfed/model/model.h"

#include <algorithm>

#include "bitfed/model/largest_scores.h"

namespace bitfed {

std::vector<uint16_t> largest_scores(const std::vector<float>& scores, size_t classes) {
  std::vector<uint16_t> labels(scores.size() / classes);
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto first = scores.begin() + static_cast<std::ptrdiff_t>(i * classes);
    labels[i] =
        static_cast<uint16_t>(std::max_element(first, first + static_cast<std::ptrdiff_t>(classes)) - first);
  }
  return labels;
}

std::vector<uint16_t> predict(const Model& model, const Dataset& dataset, ThreadPool& pool) {
  return largest_scores(model.scores(dataset, pool), model.class_count());
}

}  // namespace bitfed
