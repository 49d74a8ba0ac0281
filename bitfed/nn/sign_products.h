#pragma once

#include <memory>

#include "bitfed/nn/convolution_geometry.h"

namespace bitfed {

// The products on the way back through a convolution of signs with signs. Gradients become fixed point, 16
// bits; one operand is always a sign, so sums are whole numbers, exact, and the same in whatever order a
// machine takes them.
class SignProducts {
 public:
  virtual ~SignProducts() = default;

  // Signs, a row a filter, by tap and input channel.
  virtual void take_weights(const Matrix& signs) = 0;
  // Of the output; times the factor it must fit 16 bits, and no sum of it leave 32.
  virtual void take_gradient(const Images& gradient, size_t images, float factor) = 0;
  // With the factor and the images of take_gradient().
  virtual void weight_gradient(const Images& input, size_t images, float factor, Matrix* gradient) = 0;
  virtual void input_gradient(size_t images, float factor, Images* gradient) = 0;
};

// The input has a border of one, the output none; channels come in whole lanes. In tiles where the
// instruction set has them.
std::unique_ptr<SignProducts> make_sign_products(size_t batch, const ImageShape& input,
                                                 const ImageShape& output, const ConvolutionKernel& kernel);

}  // namespace bitfed
