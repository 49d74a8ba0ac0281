#include "bitfed/federated/arithmetic/geometric_median.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace bitfed {
namespace {

constexpr int kMaxSteps = 100;
constexpr float kTolerance = 1e-6f;    // of a step, relative to the middle distance of the models
constexpr float kMinDistance = 1e-6f;  // likewise: a model at the median itself does not get all the weight

float distance(const TensorValues& a, const TensorValues& b, const std::vector<bool>& learned) {
  double square = 0;
  for (size_t t = 0; t < a.size(); ++t) {
    if (!learned[t]) continue;
    for (size_t i = 0; i < a[t].size(); ++i) {
      const double difference = static_cast<double>(a[t][i]) - b[t][i];
      square += difference * difference;
    }
  }
  return static_cast<float>(std::sqrt(square));
}

void weighted_mean(const std::vector<const TensorValues*>& models, const std::vector<float>& weights,
                   TensorValues* mean) {
  for (size_t t = 0; t < mean->size(); ++t) {
    for (size_t i = 0; i < (*mean)[t].size(); ++i) {
      double sum = 0;
      double total = 0;
      for (size_t m = 0; m < models.size(); ++m) {
        sum += static_cast<double>(weights[m]) * (*models[m])[t][i];
        total += weights[m];
      }
      (*mean)[t][i] = static_cast<float>(sum / total);
    }
  }
}

}  // namespace

// Weiszfeld's iteration: the mean of the models, each weighted with the inverse of its distance to the last
// guess.
TensorValues geometric_median(const std::vector<const TensorValues*>& models,
                              const std::vector<bool>& learned, const TensorValues& start) {
  TensorValues median = start;
  TensorValues before;
  std::vector<float> weights(models.size());
  std::vector<float> sorted;
  for (int step = 0; step < kMaxSteps; ++step) {
    for (size_t m = 0; m < models.size(); ++m) weights[m] = distance(*models[m], median, learned);
    // The middle distance stays of the honest models' order whatever the others send.
    sorted = weights;
    std::sort(sorted.begin(), sorted.end());
    const float scale = sorted[(sorted.size() - 1) / 2];
    for (float& weight : weights) weight = 1 / std::max({weight, kMinDistance * scale, 1e-30f});
    before = median;
    weighted_mean(models, weights, &median);
    if (distance(median, before, learned) <= kTolerance * scale) break;
  }
  return median;
}

}  // namespace bitfed
