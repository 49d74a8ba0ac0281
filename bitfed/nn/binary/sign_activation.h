#pragma once

#include <optional>

#include "bitfed/nn/kernels/kernels.h"
#include "bitfed/nn/layers/layer.h"

namespace bitfed {

// How signs go on: as bits to a BinaryConvolution, as floats to a Convolution.
enum class SignForm { kBits, kFloats };

// The signs of values about a mean: standardised, then sign; a border of one is put about the signs.
// Gradients pass by the surrogate, then through the standardisation.
class SignActivation : public Layer {
 public:
  // About the mean of all channels and pixels of an image, in prediction too.
  SignActivation(size_t batch, const ImageShape& input, SignForm form);
  // About that of the whole batch, and in prediction about the running mean, the statistic NAME.mean.
  SignActivation(size_t batch, const ImageShape& input, SignForm form, const std::string& name);

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override {
    go_back(input, images, nullptr, input_gradient);
  }
  void backward_beside(const Images& input, size_t images, const Images& beside,
                       Images* input_gradient) override {
    go_back(input, images, &beside, input_gradient);
  }
  std::vector<Parameter*> parameters() override;
  void start(RandomStream random) override;

 private:
  // Not steeper toward the end, unlike that of weights: gradients pass one such sign for every layer, and the
  // slope of t = 10, seldom and large, would make them 3.3 times as large at each.
  static constexpr Surrogate kSurrogate{1, 1};

  // How many images share a mean.
  size_t together(size_t images) const { return running_mean_ ? images : 1; }
  float deviation(const Images& input, size_t first, size_t images, float mean) const;
  void gather(float mean);
  void go_back(const Images& input, size_t images, const Images* beside, Images* input_gradient);
  void put_signs(const Images& input, size_t image, float mean);

  SignForm form_;
  bool streams_;
  std::optional<Parameter> running_mean_;
  std::vector<float> means_, inverse_deviations_;  // by the first image they are of
};

}  // namespace bitfed
