#pragma once

#include "bitfed/nn/layers/convolution.h"
#include "bitfed/nn/rotated/rotated_weights.h"
#include "bitfed/nn/products/sign_filters.h"
#include "bitfed/nn/products/sign_products.h"

namespace bitfed {

// A convolution of signs with signs, whose weights are rotated as FedBNN has it: 3 x 3 or 1 x 1, of stride 1
// or more, padded with zeros to as many pixels as the stride leaves. The weights of a filter stand by row and
// column of the kernel, then input channel.
//
// Its input and the way forward are of bits. On the way back gradients become fixed point, scaled by the
// largest of the batch: see SignProducts.
class BinaryConvolution : public Layer {
 public:
  // Channels come in whole lanes.
  BinaryConvolution(size_t batch, const ImageShape& input, size_t channels, const RotatedOptions& options,
                    const std::string& name, const ConvolutionKernel& kernel = {});

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override {
    go_back(input, images, false, input_gradient);
  }
  void backward_beside(const Images& input, size_t images, const Images& beside,
                       Images* input_gradient) override {
    assert(&beside == input_gradient);
    go_back(input, images, true, input_gradient);
  }
  std::vector<Parameter*> parameters() override { return rotated_.parameters(); }
  void start(RandomStream random) override { rotated_.start(random); }
  void begin_round() override { rotated_.begin_round(); }
  void begin_epoch(double part) override { rotated_.begin_epoch(kRotationIterations, part); }
  void end_round() override { rotated_.end_round(); }
  std::vector<std::vector<float>> deployed() override;

  // Of the weights' signs, a row a filter, after a way back.
  const Matrix& sign_gradient() const { return gradient_; }

  static constexpr size_t kRotationIterations = 3;

 private:
  void go_back(const Images& input, size_t images, bool adds, Images* gradient);
  void sum_tail(const Images& input, size_t pixels);

  ImageShape input_;
  ConvolutionKernel kernel_;
  RotatedWeights rotated_;
  SignFilters filters_;
  Matrix gradient_;  // of the signs, a row a filter
  Floats tail_;
  std::vector<uint32_t> places_;  // of patches, in words of signs
  std::vector<uint8_t> cases_;    // see SignFilters
  std::unique_ptr<SignProducts> products_;
};

// The same with real inputs, for the first layer of a network.
class BinaryWeightConvolution : public Convolution {
 public:
  BinaryWeightConvolution(size_t batch, const ImageShape& input, size_t channels,
                          const RotatedOptions& options, const std::string& name,
                          const ConvolutionKernel& kernel = {});

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;
  void backward_beside(const Images& input, size_t images, const Images& beside,
                       Images* input_gradient) override;
  std::vector<Parameter*> parameters() override { return rotated_.parameters(); }
  void start(RandomStream random) override { rotated_.start(random); }
  void begin_round() override { rotated_.begin_round(); }
  void begin_epoch(double part) override {
    rotated_.begin_epoch(BinaryConvolution::kRotationIterations, part);
  }
  void end_round() override { rotated_.end_round(); }
  std::vector<std::vector<float>> deployed() override;

 private:
  void take_signs();
  void pass_weight_gradient();

  RotatedWeights rotated_;
  Matrix gradient_;  // of the signs, a row a filter
};

}  // namespace bitfed
