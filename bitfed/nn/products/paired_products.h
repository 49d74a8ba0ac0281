#pragma once

#include <vector>

#include "bitfed/nn/products/sign_products.h"

namespace bitfed {

// Products of 16-bit integers in pairs, which all instruction sets have.
class PairedProducts : public SignProducts {
 public:
  PairedProducts(size_t batch, const ImageShape& input, const ImageShape& output,
                 const ConvolutionKernel& kernel);

  void take_weights(const Matrix& signs) override;
  void backward(const Images& gradient, const Images& input, size_t images, float factor, Matrix* of_weights,
                Images* of_input, bool adds) override;

 private:
  void take_gradient(const Images& gradient, size_t images, float factor);
  void weight_gradient(const Images& input, size_t images, float factor, Matrix* gradient);
  void input_gradient(size_t images, float factor, bool adds, Images* gradient);
  // Two images interleaved; after an odd last image, zeros.
  void pair_gradients(const Images& gradient, size_t pair, size_t images, float factor);
  void pair_signs(const Images& input, size_t pair, size_t images);
  void add_weight_gradient(size_t first, size_t count, size_t y);
  void phase_gradient(const ConvolutionPhase& phase, const int16_t* weights, size_t images, float factor,
                      bool adds, Images* gradient);

  ImageShape input_, output_;
  ConvolutionKernel kernel_;
  Shorts weights_;                         // phase by phase, [panel][tap][pair of filters][input channel]
  Shorts paired_signs_, paired_gradient_;  // two images interleaved
  ImageShape bordered_;                    // the output's gradient with its border
  Shorts bordered_gradient_;
  Shorts panel_;  // signs of pixels' patches
  Floats no_gradient_;
  Aligned<int32_t> sums_;              // of the weights' gradient
  Floats phase_pixels_;                // a phase's gradients, where there are several
  std::vector<uint32_t> patch_pairs_;  // offsets of patches in an image's pairs
  std::vector<ConvolutionPhase> phases_;
};

}  // namespace bitfed
