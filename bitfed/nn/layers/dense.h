#pragma once

#include "bitfed/nn/layers/layer.h"

namespace bitfed {

enum class Bias { kNone, kLearned };

// Every input of an image to each of `units` outputs: one pixel of `units` channels, padded to kLanes.
// Weights are stored by input (row, column, channel of the image), then output; those of padding stay 0.
class Dense : public Layer {
 public:
  // The input has no border. Its channels are padded to kLanes, unless its gradient is never asked for (a
  // first layer).
  Dense(size_t batch, const ImageShape& input, size_t units, const std::string& name,
        Bias bias = Bias::kNone);

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;

 private:
  std::vector<Parameter*> own_parameters() override;
  void on_initialise(RandomStream random) override;
  void bias_gradient(size_t images);
  void prefetch_weights(size_t first, size_t rows) const;

  size_t inputs_;
  size_t units_;
  Bias has_bias_;
  Parameter weights_, bias_;
  std::vector<uint32_t> rows_;  // where each image's inputs begin
  Floats by_unit_;              // the output's gradient, transposed
  Floats by_input_, by_image_;  // a panel of the input's gradient
};

}  // namespace bitfed
