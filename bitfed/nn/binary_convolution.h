#pragma once

#include "bitfed/nn/convolution.h"
#include "bitfed/nn/rotated_weights.h"

namespace bitfed {

// A convolution that multiplies by the signs of rotated weights.
class BinaryConvolution : public Convolution {
 public:
  BinaryConvolution(size_t batch, const ImageShape& input, size_t channels, const RotatedOptions& options,
                    const std::string& name, const ConvolutionKernel& kernel = {});

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;
  std::vector<Parameter*> parameters() override { return rotated_.parameters(); }
  void start(RandomStream random) override { rotated_.start(random); }
  void begin_round() override { rotated_.begin_round(); }
  void begin_epoch(double part) override;
  void end_round() override { rotated_.end_round(); }

  // The signs, by row and column of the kernel, input channel, output channel.
  std::vector<std::vector<float>> deployed() override;

 private:
  RotatedWeights rotated_;
};

}  // namespace bitfed
