#pragma once

#include "bitfed/nn/layers/layer.h"

namespace bitfed {

enum class Bias { kNone, kLearned };

// All inputs of an image to each of `units` outputs. The weights stand by input, then output; the outputs'
// places are padded to whole lanes.
class Dense : public Layer {
 public:
  Dense(size_t batch, const ImageShape& input, size_t units, const std::string& name,
        Bias bias = Bias::kNone);

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;
  std::vector<Parameter*> parameters() override;
  void start(RandomStream random) override;

 private:
  void bias_gradient(size_t images);

  size_t inputs_;
  size_t units_;
  Bias has_bias_;
  Parameter weights_, bias_;
  Matrix transposed_;
};

}  // namespace bitfed
