#pragma once

#include "bitfed/nn/layer.h"

namespace bitfed {

// The largest of 2 x 2 pixels; an odd last row or column is left out. The output has the border that the
// layer behind it needs.
class MaxPool : public Layer {
 public:
  MaxPool(size_t batch, const ImageShape& input, size_t border);

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;
};

}  // namespace bitfed
