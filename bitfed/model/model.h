#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bitfed/base/thread_pool.h"
#include "bitfed/data/dataset.h"
#include "bitfed/model/predictor.h"
#include "bitfed/model/state.h"

namespace bitfed {

// What one prediction costs on the deployed model.
struct ModelCosts {
  uint64_t bytes = 0;       // of the packed tensors
  uint64_t flops = 0;       // real additions and multiplications
  uint64_t binary_ops = 0;  // one-bit operations: an AND, or an XNOR with its count
  // As the FedBNN paper counts; none for models that it does not have.
  std::optional<uint64_t> paper_bytes, paper_flops;
};

// A trained model: it predicts, and it can be written down.
class Model {
 public:
  virtual ~Model() = default;

  // Scores, sample by sample, class_count() each; the largest wins, the lowest class among equals.
  virtual std::vector<float> scores(const Dataset& dataset, ThreadPool& pool) const;
  // An input_error where the model does not take samples like these.
  virtual void check_fits(const Dataset& dataset) const = 0;
  // The model made ready to predict; lives on without it.
  virtual std::unique_ptr<Predictor> predictor() const = 0;
  virtual size_t class_count() const = 0;
  virtual State state() const = 0;
  virtual ModelCosts costs() const = 0;

  // A real network with its weights and activations made signs after training; none of other models, nor
  // where its shape has no binary form.
  virtual std::unique_ptr<Model> binarised() const { return nullptr; }
};

// Samples that a thread of the pool predicts before it takes others.
size_t prediction_share(size_t samples, const ThreadPool& pool);

std::vector<uint16_t> predict(const Model& model, const Dataset& dataset, ThreadPool& pool);

}  // namespace bitfed
