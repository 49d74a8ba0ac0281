#pragma once

#include "bitfed/cuda/kernels.h"

namespace bitfed::cuda {

// Convolutions of real numbers on the tensor cores: factors are rounded to TF32 (eleven significant bits),
// sums are floats in an order that depends on the shapes alone. Not the CPU's bits. As the functions
// real_convolution_*.
bool tf32_takes(const RealConvolution& convolution);  // channels by sixteens: all but a network's input
size_t tf32_partial_floats(const Cohort& cohort, const RealConvolution& convolution);

void tf32_forward(const Cohort& cohort, const RealConvolution& convolution, const Stream& stream);
void tf32_weights(const Cohort& cohort, const RealConvolution& convolution, const float* gradient,
                  const Stream& stream);
void tf32_input(const Cohort& cohort, const RealConvolution& convolution, const float* gradient, bool adds,
                float* x_gradient, const Stream& stream);

}  // namespace bitfed::cuda
