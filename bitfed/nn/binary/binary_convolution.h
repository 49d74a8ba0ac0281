#pragma once

#include "bitfed/nn/binary/sign_filters.h"
#include "bitfed/nn/convolution/convolution.h"
#include "bitfed/nn/products/sign_products.h"
#include "bitfed/nn/rotated/rotated_weights.h"

namespace bitfed {

// A convolution of signs with signs, whose weights are rotated as FedBNN has it, of kernels up to
// SignFilters::kMaxSide. The input has a border of at least the kernel's padding, of zeros that count for
// nothing. The weights of a filter are stored by row and column of the kernel, then input channel.
//
// Its input and forward pass are of bits. In the backward pass gradients become fixed point, scaled by the
// batch's max(abs(gradient)): see SignProducts.
class BinaryConvolution : public AddingLayer {
 public:
  // Channels are multiples of kLanes.
  BinaryConvolution(size_t batch, const ImageShape& input, size_t channels, const RotatedOptions& options,
                    const std::string& name, const ConvolutionKernel& kernel = {});

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;
  void backward_adding(const Images& input, size_t images, const Images& other,
                       Images* input_gradient) override;

  // Of the weights' signs, a row per filter, after a backward pass.
  const Matrix& sign_gradient() const { return gradient_; }

  static constexpr size_t kRotationIterations = 3;

 private:
  std::vector<Parameter*> own_parameters() override { return rotated_.parameters(); }
  void on_initialise(RandomStream random) override { rotated_.initialise(random); }
  void on_set_anchor() override { rotated_.set_anchor(); }
  void on_begin_epoch(double progress) override { rotated_.begin_epoch(kRotationIterations, progress); }
  void on_fuse() override { rotated_.fuse(); }
  std::vector<std::vector<float>> own_deployed() override;

  void differentiate(const Images& input, size_t images, bool adds, Images* gradient);
  void sum_tail(const Images& input, size_t pixels);

  ImageShape input_;
  ConvolutionKernel kernel_;
  RotatedWeights rotated_;
  SignFilters filters_;
  Matrix gradient_;  // of the signs, a row per filter
  Floats tail_;
  std::vector<uint32_t> offsets_;  // of patches, in words of signs
  std::vector<uint8_t> cases_;     // see SignFilters
  std::unique_ptr<SignProducts> products_;
};

// A convolution of real inputs with signs, for the first layer of a network.
class BinaryWeightConvolution : public Convolution {
 public:
  BinaryWeightConvolution(size_t batch, const ImageShape& input, size_t channels,
                          const RotatedOptions& options, const std::string& name,
                          const ConvolutionKernel& kernel = {});

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;
  void backward_adding(const Images& input, size_t images, const Images& other,
                       Images* input_gradient) override;

 private:
  std::vector<Parameter*> own_parameters() override { return rotated_.parameters(); }
  void on_initialise(RandomStream random) override { rotated_.initialise(random); }
  void on_set_anchor() override { rotated_.set_anchor(); }
  void on_begin_epoch(double progress) override {
    rotated_.begin_epoch(BinaryConvolution::kRotationIterations, progress);
  }
  void on_fuse() override { rotated_.fuse(); }
  std::vector<std::vector<float>> own_deployed() override;

  void take_signs();
  void pass_weight_gradient();

  RotatedWeights rotated_;
  Matrix gradient_;  // of the signs, a row per filter
};

}  // namespace bitfed
