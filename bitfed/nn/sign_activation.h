#pragma once

#include <optional>

#include "bitfed/nn/layer.h"
#include "bitfed/nn/rotated_weights.h"

namespace bitfed {

// The signs of values about a mean: standardised, then sign; the border of zeros is put about the signs.
// Gradients pass by the surrogate, then through the standardisation.
class SignActivation : public Layer {
 public:
  // About the mean of all channels and pixels of an image, in prediction too.
  SignActivation(size_t batch, const ImageShape& input, size_t border);
  // About that of the whole batch, and in prediction about the running mean, the statistic NAME.mean.
  SignActivation(size_t batch, const ImageShape& input, size_t border, const std::string& name);

  void forward(const Images& input, size_t images, Pass pass) override;
  void backward(const Images& input, size_t images, Images* input_gradient) override;
  std::vector<Parameter*> parameters() override;
  void start(RandomStream random) override;
  void begin_epoch(double part) override { surrogate_ = surrogate_of_activations(part); }

 private:
  // How many images share a mean.
  size_t together(size_t images) const { return running_mean_ ? images : 1; }
  float deviation(const Images& input, size_t first, size_t images, float mean) const;
  void gather(float mean);

  Surrogate surrogate_ = surrogate_of_activations(0);
  std::optional<Parameter> running_mean_;
  std::vector<float> means_, inverse_deviations_;  // by the first image they are of
};

}  // namespace bitfed
