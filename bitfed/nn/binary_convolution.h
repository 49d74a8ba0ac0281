#pragma once

#include "bitfed/nn/convolution.h"
#include "bitfed/nn/rotated_weights.h"
#include "bitfed/nn/sign_filters.h"

namespace bitfed {

// A convolution of signs with signs, whose weights are rotated as FedBNN has it: 3 x 3 or 1 x 1, of stride 1
// or more, padded with zeros to as many pixels as the stride leaves. The weights of a filter stand by row and
// column of the kernel, then input channel.
//
// The way forward is of bits. On the way back gradients become fixed point first, 16 bits, scaled by the
// largest of the batch: one operand is always a sign, so the sums are exact, and the same on every machine.
class BinaryConvolution : public Layer {
 public:
  // Channels come in whole lanes.
  BinaryConvolution(size_t batch, const ImageShape& input, size_t channels, const RotatedOptions& options,
                    const std::string& name, const ConvolutionKernel& kernel = {});

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;
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
  void pack_signs(const Images& input, size_t images);
  void sum_tail(size_t pixels);
  void pack_weights_back(const Matrix& signs);
  void fix_gradient(size_t images, float factor);
  // Two images in turn, the second of them nothing where the number of images is odd.
  void pair_images(const Images& from, size_t pair, size_t images, float factor, Shorts* to) const;
  void weight_gradient(const Images& input, size_t images, float factor);
  void add_weight_gradient(size_t first, size_t count, size_t y, float factor);
  void input_gradient(size_t images, float factor, Images* gradient);
  const int16_t* phase_gradient(const ConvolutionPhase& phase, const int16_t* weights, size_t images,
                                float factor, Images* gradient);

  ImageShape input_;
  ConvolutionKernel kernel_;
  RotatedWeights rotated_;
  SignFilters filters_;
  Matrix gradient_;                        // of the signs, a row a filter
  Shorts weights_back_;                    // phase by phase
  AlignedVector<uint32_t> signs_;          // the input
  Shorts paired_signs_, paired_gradient_;  // two images in turn
  ImageShape bordered_;                    // of the output's gradient with a border
  Shorts bordered_gradient_;
  Shorts panel_;  // of the signs, patches of pixels
  Floats tail_;
  Floats no_image_;
  Floats phase_pixels_;                           // a phase's gradients, where there are several
  std::vector<uint32_t> places_, paired_places_;  // of patches, in words of signs and in pairs
  std::vector<uint8_t> cases_;                    // see SignFilters
  std::vector<ConvolutionPhase> phases_;
};

// The same with real inputs, for the first layer of a network.
class BinaryWeightConvolution : public Convolution {
 public:
  BinaryWeightConvolution(size_t batch, const ImageShape& input, size_t channels,
                          const RotatedOptions& options, const std::string& name,
                          const ConvolutionKernel& kernel = {});

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;
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

  RotatedWeights rotated_;
  Matrix gradient_;  // of the signs, a row a filter
};

}  // namespace bitfed
