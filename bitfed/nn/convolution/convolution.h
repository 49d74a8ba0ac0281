#pragma once

#include <optional>
#include <vector>

#include "bitfed/nn/convolution/sparse_backward.h"
#include "bitfed/nn/layers/layer.h"

namespace bitfed {

// A convolution without bias. The input has a border of at least the kernel's padding. Weights are stored by
// row and column of the kernel, then input channel, then output channel.
class Convolution : public AddingLayer {
 public:
  // The input's channels are padded to kLanes, unless its gradient is never asked for (a first layer).
  Convolution(size_t batch, const ImageShape& input, size_t channels, const std::string& name,
              const ConvolutionKernel& kernel = {});

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;
  void backward_adding(const Images& input, size_t images, const Images& other,
                       Images* input_gradient) override;

  // Of the weights that multiply, after a backward pass.
  const Matrix& weight_gradient() const { return weights_.gradient; }

 protected:
  const ImageShape& input_shape() const { return input_; }
  Parameter& weights() { return weights_; }

 private:
  // Uniform within ±1 / sqrt(fan in), as PyTorch initialises convolutions.
  void on_initialise(RandomStream random) override;
  std::vector<Parameter*> own_parameters() override { return {&weights_}; }

  // Images whose gradients are processed together: they stay in the cache.
  size_t chunk_images() const;
  void backward_to_weights(const Images& input, size_t images);
  void backward_to_input(size_t images, bool adds, Images* gradient);
  void backward_to_both(const Images& input, size_t images, bool adds, Images* gradient);
  void phase_gradient(const ConvolutionPhase& phase, size_t images, bool adds, Images* gradient);

  ImageShape input_;
  ConvolutionKernel kernel_;
  Parameter weights_;
  std::vector<uint32_t> pixels_;  // offset of every output pixel's patch
  std::vector<uint32_t> inputs_;  // offset of every weight's input in a patch
  std::vector<ConvolutionPhase> phases_;
  std::optional<SparseBackward> sparse_;  // not in a first layer
  Images bordered_;                       // the output's gradient with its border
  Floats panel_;                          // of the weights or of the output's gradient, see panels.h
  Floats of_image_;                       // the weights' gradient of one image, in a first layer
  Floats phase_pixels_;                   // a phase's gradients, where there are several phases
};

}  // namespace bitfed
