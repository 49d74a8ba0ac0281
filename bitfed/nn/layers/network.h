#pragma once

#include <memory>
#include <span>
#include <vector>

#include "bitfed/nn/layers/sequence.h"

namespace bitfed {

// Layers one behind the other, from a batch of images to logits, trained by the cross-entropy. Allocates
// nothing after it is made.
class Network {
 public:
  Network(size_t batch, const ImageShape& input, size_t classes) : input_(batch, input), classes_(classes) {}

  // In their order; the first layer takes input(), the last gives `classes` logits (padded).
  void add(std::unique_ptr<Layer> layer) { layers_.add(std::move(layer)); }

  // After the last layer was added: fresh parameters.
  void start(const RandomStream& random);
  const std::vector<Parameter*>& parameters() { return parameters_; }

  // The numbers of all parameters as the trained network predicts with them, see Layer.
  std::vector<std::vector<float>> deployed() { return layers_.deployed(); }

  size_t batch() const { return input_.batch(); }
  size_t classes() const { return classes_; }
  Images& input() { return input_; }
  // Of the first images of input(), as far as labels go: the mean loss, and the gradients of all parameters.
  float differentiate(std::span<const uint16_t> labels);
  // To be called about the work of a client, see Layer.
  void begin_round() { layers_.begin_round(); }
  void begin_epoch(double part) { layers_.begin_epoch(part); }
  void end_round() { layers_.end_round(); }
  // parameters -= rate * gradient
  void descend(float rate);
  // The logits of an image after this, in its place of the batch.
  void predict(size_t images) { layers_.forward(input_, images, Pass::kPrediction); }
  const float* logits(size_t image) const { return layers_.output().row(image, 0); }

 private:
  Images input_;
  size_t classes_;
  Sequence layers_;
  std::vector<Parameter*> parameters_;
  std::vector<float> loss_sums_, loss_margins_;
};

}  // namespace bitfed
