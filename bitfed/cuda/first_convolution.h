#pragma once

#include "bitfed/cuda/kernels.h"

namespace bitfed::cuda {

// Whether a convolution takes pixels as they are. Then the gradient of its weights is a sum per image, and
// the images' sums are added in sequence, as Convolution::backward_to_weights does.
inline bool is_first_convolution(const RealConvolution& convolution) {
  return convolution.in.channels % kLanes != 0;
}

// The floats of `sums`.
inline size_t first_convolution_floats(const Cohort& cohort, const RealConvolution& convolution) {
  return size_t{cohort.clients} * cohort.batch * convolution.kernel.taps() * convolution.in.channels *
         convolution.out.channels;
}

// From the gradient of y to that of the weights; `sums` is for the images' sums.
void first_convolution_weights(const Cohort& cohort, const RealConvolution& convolution,
                               const float* gradient, float* sums, const Stream& stream);

}  // namespace bitfed::cuda
