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

// The cost of one prediction by the deployed model.
struct ModelCosts {
  uint64_t bytes = 0;       // of the packed tensors
  uint64_t flops = 0;       // floating-point additions and multiplications
  uint64_t binary_ops = 0;  // one-bit operations: an AND, or an XNOR with its population count
  // As counted in the FedBNN paper; none for models that are not in it.
  std::optional<uint64_t> paper_bytes, paper_flops;
};

// A trained model: it predicts, and it can be saved.
class Model {
 public:
  virtual ~Model() = default;

  // Scores [sample][class]. The class with the largest score is predicted; the lowest class on ties.
  virtual std::vector<float> scores(const Dataset& dataset, ThreadPool& pool) const;
  // An input_error where the model does not accept samples like these.
  virtual void check_fits(const Dataset& dataset) const = 0;
  // The model prepared for prediction; independent of the lifetime of the model.
  virtual std::unique_ptr<Predictor> predictor() const = 0;
  virtual size_t class_count() const = 0;
  virtual State state() const = 0;
  virtual ModelCosts costs() const = 0;

  // For a real-valued network: the network with weights and activations binarised after training. Null for
  // other models, and where the architecture has no binary form.
  virtual std::unique_ptr<Model> binarised() const { return nullptr; }
};

// The number of samples in one task of a parallel prediction.
size_t prediction_share(size_t samples, const ThreadPool& pool);

std::vector<uint16_t> predict(const Model& model, const Dataset& dataset, ThreadPool& pool);

}  // namespace bitfed
