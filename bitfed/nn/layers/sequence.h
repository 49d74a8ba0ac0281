#pragma once

#include <memory>
#include <vector>

#include "bitfed/nn/layers/layer.h"

namespace bitfed {

// Layers one behind the other. Functions of the same name as a Layer's are as there, for all of them.
class Sequence {
 public:
  void add(std::unique_ptr<Layer> layer) { layers_.push_back(std::move(layer)); }
  bool empty() const { return layers_.empty(); }

  void forward(const Images& input, size_t images, Pass pass);
  void backward(const Images& input, size_t images, Images* input_gradient);
  void backward_beside(const Images& input, size_t images, const Images& beside, Images* input_gradient);
  std::vector<Parameter*> parameters() const;
  void start(const RandomStream& random);  // each layer from a stream of its own
  void begin_round();
  void begin_epoch(double part);
  void end_round();
  std::vector<std::vector<float>> deployed();

  // The last layer's.
  const Images& output() const { return layers_.back()->output(); }
  Images& output_gradient() { return layers_.back()->output_gradient(); }
  void share_output_gradient(Images* gradient) { layers_.back()->share_output_gradient(gradient); }

 private:
  void backward_to_first(size_t images);

  std::vector<std::unique_ptr<Layer>> layers_;
};

}  // namespace bitfed
