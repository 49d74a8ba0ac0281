#include "bitfed/nn/layers/biased_activation.h"

namespace bitfed {

BiasedActivation::BiasedActivation(size_t batch, const ImageShape& input, Activation activation,
                                   const std::string& name, size_t fan_in, size_t border)
    : ActivationLayer(batch, input, activation, border), bias_(input, name, fan_in) {}

void BiasedActivation::forward(const Images& input, size_t images, Pass /*pass*/) {
  activate(input, images, bias_.values());
}

// An image at a time: a cache holds its gradient from the activation's pass to the bias's.
void BiasedActivation::backward(const Images& /*input*/, size_t images, Images* input_gradient) {
  Images& gradient = input_gradient != nullptr ? *input_gradient : output_gradient();
  bias_.begin_gradient();
  for (size_t image = 0; image < images; ++image) {
    pass_gradient({image, 1}, &gradient);
    bias_.add_gradient(gradient.row(image, 0), gradient.shape().pixels());
  }
}

}  // namespace bitfed
