#pragma once

#include "bitfed/nn/layer.h"
#include "bitfed/nn/rotated_weights.h"

namespace bitfed {

// The signs of an image's values about their mean: standardised over all channels and pixels of the image,
// then sign; the border of zeros is put about the signs. Gradients pass by the surrogate, then through the
// standardisation.
class SignActivation : public Layer {
 public:
  SignActivation(size_t batch, const ImageShape& input, size_t border);

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;
  void begin_epoch(double part) override { surrogate_ = surrogate_of_activations(part); }

 private:
  Surrogate surrogate_ = surrogate_of_activations(0);
  std::vector<float> means_, inverse_deviations_;  // an image each
};

}  // namespace bitfed
