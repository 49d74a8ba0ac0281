#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bitfed/nn/kernels/adam.h"
#include "bitfed/nn/kernels/matrix.h"
#include "bitfed/nn/mlp/mlp.h"

namespace bitfed {

enum class MlpOptimizer { kAdam, kDescent };

// Trains a perceptron on the cross-entropy, by Adam, or by gradient descent at Adam's rate (real weights
// alone). A step allocates nothing: memory is allocated when the
// trainer is made. The same bits on every instruction set. Used by one thread at a time.
class MlpTrainer {
 public:
  MlpTrainer(const MlpShape& shape, size_t batch, const AdamOptions& adam,
             MlpOptimizer optimizer = MlpOptimizer::kAdam);

  // Sets the parameters and resets the optimiser.
  void load(const MlpParameters& parameters);
  MlpParameters parameters() const;

  // Where the inputs of the next batch's sample `row` go, contiguous.
  float* input(size_t row) { return inputs_.row(row); }

  // One step on the first labels.size() samples, at most a batch; returns the mean loss before it. A batch of
  // one sample has no variance, and leaves the running statistics as they are.
  float step(std::span<const uint16_t> labels);

 private:
  // Parameters with Adam's moments.
  struct Trained {
    Floats values, gradient, first, second;
  };
  struct Layer {
    size_t in = 0;
    size_t out = 0;
    size_t stride = 0;  // of rows of outputs
    Trained weights;    // in rows of `stride`
    Trained shift;
    Floats mean, variance;  // running
    Floats ones, unused;    // batch norm has no scale here
    Floats used;            // the weights as they multiply: signs where binary
    Matrix transposed;      // of `used`, for the backward pass; not in the first layer
    Floats batch_mean, batch_variance, inverse_std;
    Matrix sums, activations, gradient;  // a row per sample
  };

  Layer make_layer(size_t index, size_t batch) const;
  void forward(size_t rows);
  void backward(size_t rows);
  void move(Trained* trained, bool latent) const;
  Activation activation(size_t layer) const;

  MlpShape shape_;
  Adam adam_;
  MlpOptimizer optimizer_;
  std::vector<Layer> layers_;
  Matrix inputs_;
  std::vector<float> loss_sums_, loss_margins_;
};

}  // namespace bitfed
