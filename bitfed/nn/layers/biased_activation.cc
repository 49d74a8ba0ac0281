#include "bitfed/nn/layers/biased_activation.h"

#include <cmath>

namespace bitfed {

BiasedActivation::BiasedActivation(size_t batch, const ImageShape& input, Activation activation,
                                   const std::string& name, size_t fan_in, size_t border)
    : ActivationLayer(batch, input, activation, border),
      fan_in_(fan_in),
      bias_(name + ".bias", 1, input.used_channels()),
      image_sum_(input.channels) {}

void BiasedActivation::on_initialise(RandomStream random) {
  const double limit = 1 / std::sqrt(static_cast<double>(fan_in_));
  for (size_t c = 0; c < bias_.count(); ++c)
    bias_.values.row(0)[c] = static_cast<float>(limit * (2 * random.uniform() - 1));
}

void BiasedActivation::forward(const Images& input, size_t images, Pass /*pass*/) {
  activate(input, images, bias_.values.row(0));
}

// The bias's gradient is summed image by image: float sums over a whole batch would lose digits.
void BiasedActivation::backward(const Images& /*input*/, size_t images, Images* input_gradient) {
  Images& gradient = input_gradient != nullptr ? *input_gradient : output_gradient();
  pass_gradient(images, &gradient);
  const ImageShape& shape = gradient.shape();
  const float one = 1;
  bias_.gradient.values.clear();
  for (size_t image = 0; image < images; ++image) {
    neural_kernels().multiply({&one, 0, 0, gradient.row(image, 0), shape.channels, image_sum_.data(),
                               shape.channels, 1, shape.channels, shape.pixels()});
    neural_kernels().add(bias_.gradient.row(0), image_sum_.data(), shape.channels, bias_.gradient.row(0));
  }
}

}  // namespace bitfed
