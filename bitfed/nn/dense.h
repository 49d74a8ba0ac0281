#pragma once

#include "bitfed/nn/layer.h"

namespace bitfed {

// All inputs of an image to each of `units` outputs, without bias. The weights stand by input, then output;
// the outputs' places are padded to whole lanes.
class Dense : public Layer {
 public:
  Dense(size_t batch, const ImageShape& input, size_t units, const std::string& name);

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;
  std::vector<Parameter*> parameters() override { return {&weights_}; }
  void start(RandomStream random) override;

 private:
  size_t inputs_;
  size_t units_;
  Parameter weights_;
  Matrix transposed_;
};

}  // namespace bitfed
