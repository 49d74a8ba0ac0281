#pragma once

#include "bitfed/nn/layers/layer.h"

namespace bitfed {

// The mean of every channel over all pixels of an image, added up in their order.
void average_pixels(const float* x, size_t pixels, size_t channels, float* mean);

class AveragePool : public Layer {
 public:
  AveragePool(size_t batch, const ImageShape& input);

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;
};

}  // namespace bitfed
