#pragma once

#include "bitfed/nn/layers/layer.h"

namespace bitfed {

// The same images with a border of zeros about them, for a convolution behind a layer that has none.
class Border : public Layer {
 public:
  Border(size_t batch, const ImageShape& input, size_t border);

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;
  void backward_beside(const Images& input, size_t images, const Images& beside,
                       Images* input_gradient) override;
};

}  // namespace bitfed
