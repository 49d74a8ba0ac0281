#pragma once

#include <memory>
#include <span>
#include <vector>

#include "bitfed/nn/kernels/adam.h"
#include "bitfed/nn/layers/sequence.h"

namespace bitfed {

// How a step changes the parameters: by gradient descent, see MomentumStep, or by Adam, which has neither
// momentum nor decay. Weight decay is for the parameters that decay, momentum for all that are learned.
struct Descent {
  float rate;
  float momentum = 0;
  float decay = 0;
  bool adam = false;

  bool is_plain() const { return momentum == 0 && decay == 0 && !adam; }
};

// Layers in sequence, from a batch of images to logits, trained by the cross-entropy. A training step
// allocates nothing. Used by one thread at a time.
class Network {
 public:
  Network(size_t batch, const ImageShape& input, size_t classes) : input_(batch, input), classes_(classes) {}

  // In their order; the first layer takes input(), the last gives `classes` logits (padded).
  void add(std::unique_ptr<Layer> layer) { layers_.add(std::move(layer)); }
  Sequence& layers() { return layers_; }

  // Hooks, see LayerGroup; initialise() after the last layer was added, and before all else.
  void initialise(const RandomStream& random);
  void seed(const RandomStream& random) { layers_.seed(random); }
  void set_anchor() { layers_.set_anchor(); }
  void begin_epoch(double progress) { layers_.begin_epoch(progress); }
  void fuse() { layers_.fuse(); }

  const std::vector<Parameter*>& parameters() { return parameters_; }
  std::vector<std::vector<float>> deployed() { return layers_.deployed(); }

  size_t batch() const { return input_.batch(); }
  size_t classes() const { return classes_; }
  Images& input() { return input_; }
  // Forward and backward pass of the first labels.size() images of input(): returns the mean loss, and leaves
  // the gradients in parameters().
  float differentiate(std::span<const uint16_t> labels);
  // The next differentiate() is followed by this descent along its gradients as they are: a plain one is
  // taken layer by layer where they can, and their gradients are never seen.
  void announce(const Descent& descent);
  // One step along the gradients. The first one that is not plain allocates the velocity, or Adam's moments.
  void descend(const Descent& descent);
  // The velocity becomes 0, and so do the moments.
  void stop();
  // Forward pass of the first images of input(), then their logits.
  void predict(size_t images) { layers_.forward(input_, images, Pass::kPrediction); }
  const float* logits(size_t image) const { return layers_.output().row(image, 0); }

 private:
  Images input_;
  size_t classes_;
  Sequence layers_;
  std::vector<Parameter*> parameters_;
  std::vector<Matrix> velocities_;  // of every parameter, or first moments; empty as long as descent is plain
  std::vector<Matrix> second_moments_;  // empty as long as there is no Adam
  Adam adam_;
  std::vector<float> loss_sums_, loss_margins_;
};

}  // namespace bitfed
