#pragma once

#include <memory>

#include "bitfed/nn/layers/convolution_geometry.h"

namespace bitfed {

// The products on the way back through a convolution of signs with signs. Gradients become fixed point, 16
// bits; one operand is always a sign, so sums are whole numbers, exact, and the same in whatever order a
// machine takes them.
class SignProducts {
 public:
  virtual ~SignProducts() = default;

  // Signs, a row a filter, by tap and input channel.
  virtual void take_weights(const Matrix& signs) = 0;
  // From the gradient of the output, which times the factor must fit 16 bits, and no sum of it leave 32, to
  // that of the weights and, where it is asked for, of the input, whose signs are bits; or adds the latter.
  virtual void go_back(const Images& gradient, const Images& input, size_t images, float factor,
                       Matrix* of_weights, Images* of_input, bool adds) = 0;
};

// The input has a border of one, the output none; channels come in whole lanes. In tiles where the
// instruction set has them.
std::unique_ptr<SignProducts> make_sign_products(size_t batch, const ImageShape& input,
                                                 const ImageShape& output, const ConvolutionKernel& kernel);

}  // namespace bitfed
