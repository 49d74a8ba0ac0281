#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "bitfed/data/samples.h"

namespace bitfed {

// A model made ready to predict, in one thread at a time. It does not need the model any more, and has taken
// all the memory it works in, but where samples go together (see below).
class Predictor {
 public:
  virtual ~Predictor() = default;

  size_t class_count() const { return class_count_; }

  // Scores, sample by sample, class_count() each, of samples of the shape that the model takes.
  void predict(const Samples& samples, float* scores);

  // The class with the largest score of each sample, the lowest class among equals.
  void classify(const Samples& samples, uint16_t* classes);

  // One for one more thread, which shares with this what never changes; may be asked for while this predicts.
  virtual std::unique_ptr<Predictor> another() const = 0;

 protected:
  // Of a model whose scores depend on all the samples of a call: these are one block.
  static constexpr size_t kTogether = SIZE_MAX;

  Predictor(const SampleShape& shape, size_t class_count, size_t block);
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;

  const SampleShape& shape() const { return shape_; }
  size_t block() const { return block_; }

 private:
  // Of at most block() samples, at least one.
  virtual void predict_block(const Samples& samples, float* scores) = 0;

  SampleShape shape_;
  size_t class_count_;
  size_t block_;
  std::vector<float> scores_;  // of a block, for those who want the classes alone
};

// The predictors of one model, for any number of threads. One is made only where more threads predict at once
// than ever before.
class PredictorPool {
 public:
  explicit PredictorPool(std::unique_ptr<Predictor> first);

  // A predictor that nobody else has until this goes.
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
  std::vector<Predictor*> spare_;  // has room for all
};

}  // namespace bitfed
