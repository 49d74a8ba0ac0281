#pragma once

#include "bitfed/nn/layers/layer.h"

namespace bitfed {

// The mean of every channel over all pixels of an image, summed in their order.
void average_pixels(const float* x, size_t pixels, size_t channels, float* mean);

// The mean of every window x window pixels, channel by channel, summed in row-major order; the stride is
// the window. Rows and columns left over at the bottom and right are dropped.
class AveragePool : public Layer {
 public:
  // The input has no border and at least window x window pixels. Window 0: the whole image.
  AveragePool(size_t batch, const ImageShape& input, size_t window = 0);

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;

 private:
  size_t window_height_, window_width_;
};

}  // namespace bitfed
