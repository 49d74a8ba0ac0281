#include "bitfed/nn/layers/convolution_geometry.h"

#include <algorithm>

namespace bitfed {
namespace {

// Where the pixels of `height` x `width` begin that lie `stride` apart, from (y, x) on; the border counts.
struct Grid {
  size_t height, width;
  size_t stride;
  size_t y, x;
};

std::vector<uint32_t> places(size_t batch, const ImageShape& shape, const Grid& grid) {
  std::vector<uint32_t> result;
  result.reserve(batch * grid.height * grid.width);
  for (size_t image = 0; image < batch; ++image) {
    for (size_t row = 0; row < grid.height; ++row) {
      for (size_t column = 0; column < grid.width; ++column) {
        const size_t at = image * shape.image_floats() + (grid.y + row * grid.stride) * shape.row_floats() +
                          (grid.x + column * grid.stride) * shape.channels;
        result.push_back(static_cast<uint32_t>(at));
      }
    }
  }
  return result;
}

// Of a kernel's rows (or columns) those that bring a pixel of the phase to some output, the last first.
std::vector<size_t> taps_of(const ConvolutionKernel& kernel, size_t phase) {
  std::vector<size_t> taps;
  for (size_t tap = kernel.side; tap-- > 0;) {
    if ((phase + kernel.side / 2 + kernel.stride - tap % kernel.stride) % kernel.stride == 0)
      taps.push_back(tap);
  }
  return taps;
}

}  // namespace

std::vector<uint32_t> patch_places(size_t batch, const ImageShape& input, const ConvolutionKernel& kernel) {
  const size_t first = input.border - kernel.side / 2;
  return places(batch, input,
                {kernel.steps(input.height), kernel.steps(input.width), kernel.stride, first, first});
}

void ConvolutionPhase::put(const float* pixel_gradients, size_t images, bool adds, Images* gradient) const {
  const size_t channels = gradient->shape().channels;
  for (size_t image = 0; image < images; ++image) {
    for (size_t row = 0; row < height; ++row) {
      float* line = gradient->row(image, y + row * stride) + x * channels;
      for (size_t column = 0; column < width; ++column, pixel_gradients += channels) {
        float* to = line + column * stride * channels;
        if (adds) {
          neural_kernels().add(pixel_gradients, to, channels, to);
        } else {
          std::copy_n(pixel_gradients, channels, to);
        }
      }
    }
  }
}

std::vector<ConvolutionPhase> convolution_phases(size_t batch, const ImageShape& input,
                                                 const ImageShape& bordered_output,
                                                 const ConvolutionKernel& kernel) {
  std::vector<ConvolutionPhase> phases;
  for (size_t y = 0; y < kernel.stride; ++y) {
    for (size_t x = 0; x < kernel.stride; ++x) {
      ConvolutionPhase phase{y, x, kernel.stride, 0, 0, taps_of(kernel, y), taps_of(kernel, x), {}};
      if (y < input.height) phase.height = kernel.steps(input.height - y);
      if (x < input.width) phase.width = kernel.steps(input.width - x);
      if (!phase.rows.empty() && !phase.columns.empty()) {
        // The output whose last tap meets the phase's first pixel, behind the border of one.
        const size_t row = (kernel.stride + y + kernel.side / 2 - phase.rows[0]) / kernel.stride;
        const size_t column = (kernel.stride + x + kernel.side / 2 - phase.columns[0]) / kernel.stride;
        phase.pixels = places(batch, bordered_output, {phase.height, phase.width, 1, row, column});
      }
      phases.push_back(std::move(phase));
    }
  }
  return phases;
}

}  // namespace bitfed
