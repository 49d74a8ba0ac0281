#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "bitfed/data/samples.h"

namespace bitfed {

// A model prepared for prediction, used by one thread at a time. Independent of the model. All working memory
// is allocated on construction, except for models of kTogether (see below).
class Predictor {
 public:
  virtual ~Predictor() = default;

  size_t class_count() const { return class_count_; }

  // Scores [sample][class] of samples of the model's input shape.
  void predict(const Samples& samples, float* scores);

  // The class with the largest score of each sample; the lowest class on ties.
  void classify(const Samples& samples, uint16_t* classes);

  // A predictor for another thread; shares the constant data. May be called while this one predicts.
  virtual std::unique_ptr<Predictor> another() const = 0;

 protected:
  // Block size of models whose scores depend on all samples of a call: each call is one block.
  static constexpr size_t kTogether = SIZE_MAX;

  Predictor(const SampleShape& shape, size_t class_count, size_t block);
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;

  const SampleShape& shape() const { return shape_; }
  size_t block() const { return block_; }

 private:
  // For 1 to block() samples.
  virtual void predict_block(const Samples& samples, float* scores) = 0;

  SampleShape shape_;
  size_t class_count_;
  size_t block_;
  std::vector<float> scores_;  // of a block, for classify()
};

// The predictors of one model, for any number of threads. Thread-safe. Grows to the largest number of threads
// that ever predicted at the same time.
class PredictorPool {
 public:
  explicit PredictorPool(std::unique_ptr<Predictor> first);

  // Exclusive use of a predictor for the lifetime of the lease.
  class Lease {
   public:
    explicit Lease(PredictorPool* pool) : pool_(pool), predictor_(pool->take()) {}
    ~Lease() { pool_->give_back(predictor_); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Predictor* operator->() const { return predictor_; }

   private:
    PredictorPool* pool_;
    Predictor* predictor_;
  };
  Lease lease() { return Lease(this); }

 private:
  Predictor* take();
  void give_back(Predictor* predictor);

  std::mutex mutex_;
  std::vector<std::unique_ptr<Predictor>> all_;
  std::vector<Predictor*> spare_;  // capacity for all
};

}  // namespace bitfed
