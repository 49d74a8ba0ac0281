#pragma once

#include <vector>

#include "bitfed/cuda/kernels.h"

namespace bitfed::cuda {

// Pixels of a convolution's input that meet the same taps, as ConvolutionPhase has them: those at y, x and
// every `stride` further. Their taps are tap_y, tap_y - stride …, likewise x.
struct InputPhase {
  uint32_t y, x;
  uint32_t height, width;  // in pixels of the phase
  int tap_y, tap_x;        // the last taps
  uint32_t taps_y, taps_x;

  BITFED_HOST_DEVICE uint32_t pixels() const { return height * width; }
  BITFED_HOST_DEVICE uint32_t taps() const { return taps_y * taps_x; }
};

// Those that have pixels; some may have no taps.
std::vector<InputPhase> input_phases(const RealConvolution& convolution);

}  // namespace bitfed::cuda
