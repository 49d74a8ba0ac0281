#pragma once

#include <vector>

#include "bitfed/nn/layers/convolution_geometry.h"
#include "bitfed/nn/layers/layer.h"

namespace bitfed {

// A convolution without bias about every pixel, or every stride-th, of images with a border of one pixel. The
// weights stand by row and column of the kernel, then input channel, then output channel.
class Convolution : public Layer {
 public:
  // The input's channels come in whole lanes where its gradient will be asked for.
  Convolution(size_t batch, const ImageShape& input, size_t channels, const std::string& name,
              const ConvolutionKernel& kernel = {});

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;
  void backward_beside(const Images& input, size_t images, const Images& beside,
                       Images* input_gradient) override;
  std::vector<Parameter*> parameters() override { return {&weights_}; }
  // Uniform within 1 / sqrt(inputs of a unit), as PyTorch begins.
  void start(RandomStream random) override;

 protected:
  const ImageShape& input_shape() const { return input_; }
  Parameter& weights() { return weights_; }

 private:
  // Images whose gradients are worked off together: they stay in the cache.
  size_t chunk_images() const;
  void weight_gradient(const Images& input, size_t images);
  void input_gradient(size_t images, bool adds, Images* gradient);
  void phase_gradient(const ConvolutionPhase& phase, size_t images, bool adds, Images* gradient);

  ImageShape input_;
  ConvolutionKernel kernel_;
  Parameter weights_;
  std::vector<uint32_t> pixels_;  // where the patch of every pixel of the output begins
  std::vector<uint32_t> inputs_;  // where every weight's input stands in a patch
  std::vector<ConvolutionPhase> phases_;
  Images bordered_;      // the output's gradient with a border
  Floats panel_;         // of weights or of the output's gradient
  Floats phase_pixels_;  // a phase's gradients, where there are several
};

}  // namespace bitfed
