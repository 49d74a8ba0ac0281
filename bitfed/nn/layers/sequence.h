#pragma once

#include <memory>
#include <vector>

#include "bitfed/nn/layers/layer.h"

namespace bitfed {

// Layers in sequence: each takes the output of the one before. Functions as in Layer.
class Sequence : public LayerGroup {
 public:
  // `places`: of how many layers this is made; streams of later layers do not depend on what is fused.
  void add(std::unique_ptr<Layer> layer, size_t places = 1) {
    layers_.push_back(std::move(layer));
    places_.push_back(next_place_);
    next_place_ += places;
  }
  bool empty() const { return layers_.empty(); }

  void forward(const Images& input, size_t images, Pass pass);
  void backward(const Images& input, size_t images, Images* input_gradient);
  void for_each_layer(const RandomStream& random, const Visit& visit) override;

  // The last layer's.
  const Images& output() const { return layers_.back()->output(); }
  Images& output_gradient() { return layers_.back()->output_gradient(); }
  void share_output_gradient(Images* gradient) { layers_.back()->share_output_gradient(gradient); }

 protected:
  // The backward pass as far as the first layer's output.
  void backward_to_first(size_t images);

 private:
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<size_t> places_;  // which substream is a layer's
  size_t next_place_ = 0;
};

// A sequence that can add to its input's gradient, because its first layer can.
class AddingSequence : public Sequence {
 public:
  explicit AddingSequence(std::unique_ptr<AddingLayer> first) : first_(first.get()) { add(std::move(first)); }

  void backward_adding(const Images& input, size_t images, const Images& other, Images* input_gradient) {
    backward_to_first(images);
    first_->backward_adding(input, images, other, input_gradient);
  }

 private:
  AddingLayer* first_;
};

}  // namespace bitfed
