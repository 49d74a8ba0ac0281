#pragma once

#include "bitfed/nn/layers/layer.h"

namespace bitfed {

// Puts a border of zeros about images: for a convolution after a layer whose output has none.
class Border : public AddingLayer {
 public:
  Border(size_t batch, const ImageShape& input, size_t border);

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;
  void backward_adding(const Images& input, size_t images, const Images& other,
                       Images* input_gradient) override;
};

}  // namespace bitfed
