#pragma once

#include <vector>

#include "bitfed/nn/layers/layer.h"

namespace bitfed {

// The largest value of every window x window pixels, channel by channel; the stride is the window. Rows and
// columns left over at the bottom and right are dropped. Of equal values the first in row-major order is
// chosen, and gets the gradient.
class MaxPool : public Layer {
 public:
  // The input has no border and at least window x window pixels.
  MaxPool(size_t batch, const ImageShape& input, size_t window);

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;

 private:
  size_t window_;
  Aligned<int32_t> chosen_;  // of every value of the output: the pixel in its window, row by row
};

}  // namespace bitfed
