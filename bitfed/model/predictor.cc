#include "bitfed/model/predictor.h"

#include <algorithm>

#include "bitfed/model/largest_scores.h"

namespace bitfed {

Predictor::Predictor(const SampleShape& shape, size_t class_count, size_t block)
    : shape_(shape),
      class_count_(class_count),
      block_(block),
      scores_(block == kTogether ? 0 : block * class_count) {}

void Predictor::predict(const Samples& samples, float* scores) {
  for (size_t first = 0; first < samples.count;) {
    const size_t count = std::min(block_, samples.count - first);
    predict_block(samples.part(shape_, first, count), scores + first * class_count_);
    first += count;
  }
}

void Predictor::classify(const Samples& samples, uint16_t* classes) {
  if (block_ == kTogether) scores_.resize(samples.count * class_count_);
  for (size_t first = 0; first < samples.count;) {
    const size_t count = std::min(block_, samples.count - first);
    predict_block(samples.part(shape_, first, count), scores_.data());
    largest_scores(scores_.data(), count, class_count_, classes + first);
    first += count;
  }
}

PredictorPool::PredictorPool(std::unique_ptr<Predictor> first) {
  all_.push_back(std::move(first));
  spare_.push_back(all_.front().get());
}

Predictor* PredictorPool::take() {
  const Predictor* first = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      Predictor* predictor = spare_.back();
      spare_.pop_back();
      return predictor;
    }
    first = all_.front().get();
  }
  // Without the lock: copying takes long, and others may give back meanwhile. The first predictor is never
  // removed.
  std::unique_ptr<Predictor> made = first->another();
  const std::lock_guard lock(mutex_);
  spare_.reserve(all_.size() + 1);  // so that give_back() never throws
  all_.push_back(std::move(made));
  return all_.back().get();
}

void PredictorPool::give_back(Predictor* predictor) {
  const std::lock_guard lock(mutex_);
  spare_.push_back(predictor);
}

}  // namespace bitfed
