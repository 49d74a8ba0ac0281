#include "bitfed/nn/convolution/convolution_geometry.h"

#include <algorithm>

namespace bitfed {
namespace {

// Pixels `stride` apart, from (y, x) on; the border's pixels count.
struct Grid {
  size_t height, width;
  size_t stride;
  size_t y, x;
};

std::vector<uint32_t> offsets(size_t batch, const ImageShape& shape, const Grid& grid) {
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

// The kernel's rows (or columns) that bring a pixel of the phase to some output, the last first: tap t brings
// input i to output (i + padding - t) / stride, if that is whole.
std::vector<size_t> taps_of(const ConvolutionKernel& kernel, size_t phase) {
  std::vector<size_t> taps;
  for (size_t tap = kernel.side; tap-- > 0;) {
    if ((phase + kernel.padding()) % kernel.stride == tap % kernel.stride) taps.push_back(tap);
  }
  return taps;
}

// Pixels of a phase along a side of `pixels`.
size_t phase_pixels(size_t pixels, size_t phase, size_t stride) {
  return phase < pixels ? (pixels - phase - 1) / stride + 1 : 0;
}

// Where the patch of the phase's first pixel begins in the output's gradient with its border.
size_t first_output(const ConvolutionKernel& kernel, size_t phase, size_t last_tap, size_t border) {
  return (border * kernel.stride + phase + kernel.padding() - last_tap) / kernel.stride;
}

}  // namespace

std::vector<uint32_t> patch_offsets(size_t batch, const ImageShape& input, const ConvolutionKernel& kernel) {
  assert(kernel.side % 2 == 1 && input.border >= kernel.padding());
  const size_t first = input.border - kernel.padding();
  return offsets(batch, input,
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
  assert(bordered_output.border >= kernel.gradient_border());
  const size_t border = bordered_output.border;
  std::vector<ConvolutionPhase> phases;
  for (size_t y = 0; y < kernel.stride; ++y) {
    for (size_t x = 0; x < kernel.stride; ++x) {
      ConvolutionPhase phase{y,
                             x,
                             kernel.stride,
                             phase_pixels(input.height, y, kernel.stride),
                             phase_pixels(input.width, x, kernel.stride),
                             taps_of(kernel, y),
                             taps_of(kernel, x),
                             {}};
      if (!phase.rows.empty() && !phase.columns.empty()) {
        phase.pixels = offsets(batch, bordered_output,
                               {phase.height, phase.width, 1, first_output(kernel, y, phase.rows[0], border),
                                first_output(kernel, x, phase.columns[0], border)});
      }
      phases.push_back(std::move(phase));
    }
  }
  return phases;
}

}  // namespace bitfed
