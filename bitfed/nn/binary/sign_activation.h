#pragma once

#include <optional>

#include "bitfed/nn/kernels/kernels.h"
#include "bitfed/nn/layers/layer.h"

namespace bitfed {

// The form of the output: bits for a BinaryConvolution, floats for a Convolution.
enum class SignForm { kBits, kFloats };

// The signs of values minus a mean: standardised, then sign; a border of zeros is put about the signs, as
// wide as the padding of the convolution that takes them. The backward pass multiplies by the surrogate's
// derivative, then goes through the standardisation.
class SignActivation : public AddingLayer {
 public:
  // With the mean of all channels and pixels of an image, in prediction too.
  SignActivation(size_t batch, const ImageShape& input, SignForm form, size_t border = 1);
  // With the mean of the whole batch, and in prediction the running mean, the statistic NAME.mean.
  SignActivation(size_t batch, const ImageShape& input, SignForm form, const std::string& name,
                 size_t border = 1);

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;
  void backward_adding(const Images& input, size_t images, const Images& other,
                       Images* input_gradient) override;

 private:
  std::vector<Parameter*> own_parameters() override;
  void on_initialise(RandomStream random) override;

  // Constant, unlike the surrogate of weights: a gradient passes one such sign per layer, and the derivative
  // at t = 10, which is rarely other than 0 but then large, would make it 3.3 times as large at each.
  static constexpr Surrogate kSurrogate{1, 1};

  // Images that share a mean.
  size_t together(size_t images) const { return running_mean_ ? images : 1; }
  float standard_deviation(const Images& input, size_t first, size_t images, float mean) const;
  void accumulate(float mean);
  void differentiate(const Images& input, size_t images, const Images* other, Images* input_gradient);
  void put_signs(const Images& input, size_t image, float mean);

  SignForm form_;
  bool streams_;
  std::optional<Parameter> running_mean_;
  std::vector<float> means_, inverse_stds_;  // at the first image that they are of
};

}  // namespace bitfed
