#pragma once

#include <memory>

#include "bitfed/nn/convolution/convolution_geometry.h"

namespace bitfed {

// The products in the backward pass of a convolution of signs with signs. Gradients become fixed point of 16
// bits; one operand is always a sign, so sums are exact integers, and the same in whatever order they are
// taken.
class SignProducts {
 public:
  virtual ~SignProducts() = default;

  // Signs of the weights: [filter][tap][input channel].
  virtual void take_weights(const Matrix& signs) = 0;
  // From the gradient of the output to the gradients of the weights and, unless it is null, of the input, to
  // which it adds if `adds`. The input's signs are bits. The gradient times the factor must fit 16 bits, and
  // its sums 32.
  virtual void backward(const Images& gradient, const Images& input, size_t images, float factor,
                        Matrix* of_weights, Images* of_input, bool adds) = 0;
};

// The input has a border of at least the kernel's padding, the output none; channels are padded to kLanes.
// In tiles where the instruction set has them and TiledProducts supports the kernel; the bits are the same.
std::unique_ptr<SignProducts> make_sign_products(size_t batch, const ImageShape& input,
                                                 const ImageShape& output, const ConvolutionKernel& kernel);

}  // namespace bitfed
