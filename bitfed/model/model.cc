#include "bitfed/model/model.h"

#include <algorithm>

namespace bitfed {

std::vector<uint16_t> predict(const Model& model, const Dataset& dataset, ThreadPool& pool) {
  const std::vector<float> scores = model.scores(dataset, pool);
  const size_t classes = model.class_count();
  std::vector<uint16_t> labels(dataset.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto first = scores.begin() + static_cast<std::ptrdiff_t>(i * classes);
    labels[i] =
        static_cast<uint16_t>(std::max_element(first, first + static_cast<std::ptrdiff_t>(classes)) - first);
  }
  return labels;
}

}  // namespace bitfed
