#pragma once

#include <memory>
#include <span>
#include <vector>

#include "bitfed/nn/layer.h"

namespace bitfed {

// Layers one behind the other, from a batch of images to logits, trained by the cross-entropy. Allocates
// nothing after it is made.
class Network {
 public:
  Network(size_t batch, const ImageShape& input, size_t classes) : input_(batch, input), classes_(classes) {}

  // In their order; the first layer takes input(), the last gives `classes` logits (padded).
  void add(std::unique_ptr<Layer> layer) { layers_.push_back(std::move(layer)); }

  void start(const RandomStream& random);
  std::vector<Parameter*> parameters();

  // The numbers of all parameters as the trained network predicts with them, see Layer.
  std::vector<std::vector<float>> deployed();

  size_t batch() const { return input_.batch(); }
  size_t classes() const { return classes_; }
  Images& input() { return input_; }
  // Of the first images of input(), as far as labels go: the mean loss, and the gradients of all parameters.
  float differentiate(std::span<const uint16_t> labels);
  // To be called about the work of a client, see Layer.
  void begin_round();
  void begin_epoch(double part);
  void end_round();
  // parameters -= rate * gradient
  void descend(float rate);
  // The logits of an image after this, in its place of the batch.
  void predict(size_t images);
  const float* logits(size_t image) const { return layers_.back()->output().row(image, 0); }

 private:
  void forward(size_t images, Pass pass);

  Images input_;
  size_t classes_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<float> loss_sums_, loss_margins_;
};

}  // namespace bitfed
