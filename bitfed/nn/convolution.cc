#include "bitfed/nn/convolution.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace bitfed {
namespace {

constexpr size_t kChunkFloats = 32768;  // of gradients that are worked off together: they stay in the cache

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

Convolution::Convolution(size_t batch, const ImageShape& input, size_t channels, const std::string& name,
                         const ConvolutionKernel& kernel)
    : Layer(batch, {kernel.steps(input.height), kernel.steps(input.width), channels, 0}),
      input_(input),
      kernel_(kernel),
      weights_(name + ".weights", kernel.side * kernel.side * input.channels, channels) {
  assert(input.border == 1 && channels % kLanes == 0 && (kernel.side == 1 || kernel.side == 3));
  const ImageShape& output = output_.shape();
  const size_t first = input.border - kernel.side / 2;
  pixels_ = places(batch, input, {output.height, output.width, kernel.stride, first, first});
  if (input.channels % kLanes != 0) return;  // a first layer: nobody asks for its input's gradient
  bordered_ = Images(batch, {output.height, output.width, channels, 1});
  for (size_t y = 0; y < kernel.stride; ++y) {
    for (size_t x = 0; x < kernel.stride; ++x) phases_.push_back(make_phase(batch, y, x));
  }
  turned_ = Floats(weights_.count());
  if (phases_.size() > 1)
    phase_pixels_ = Floats(batch * phases_[0].height * phases_[0].width * input.channels);
}

Convolution::Phase Convolution::make_phase(size_t batch, size_t y, size_t x) const {
  Phase phase{y, x, 0, 0, taps_of(kernel_, y), taps_of(kernel_, x), {}};
  if (y < input_.height) phase.height = kernel_.steps(input_.height - y);
  if (x < input_.width) phase.width = kernel_.steps(input_.width - x);
  if (phase.rows.empty() || phase.columns.empty()) return phase;
  // The output whose last tap meets the phase's first pixel, behind bordered_'s border of one.
  const size_t row = (kernel_.stride + y + kernel_.side / 2 - phase.rows[0]) / kernel_.stride;
  const size_t column = (kernel_.stride + x + kernel_.side / 2 - phase.columns[0]) / kernel_.stride;
  phase.pixels = places(batch, bordered_.shape(), {phase.height, phase.width, 1, row, column});
  return phase;
}

void Convolution::start(RandomStream random) {
  const double limit = 1 / std::sqrt(static_cast<double>(weights_.values.rows));
  for (size_t i = 0; i < weights_.count(); ++i)
    weights_.values.values[i] = static_cast<float>(limit * (2 * random.uniform() - 1));
}

void Convolution::forward(const Images& input, size_t images, Pass /*pass*/) {
  const size_t channels = output_.shape().channels;
  const size_t depth = kernel_.side * input_.channels;
  neural_kernels().multiply_gathered({input.data(), pixels_.data(), true, false, kernel_.side,
                                      input_.row_floats(), weights_.values.values.data(), channels,
                                      depth * channels, output_.data(), channels,
                                      images * output_.shape().pixels(), channels, depth});
}

void Convolution::weight_gradient(const Images& input, size_t images) {
  const size_t channels = output_.shape().channels;
  const size_t rows = kernel_.side * input_.channels;
  const size_t pixels = output_.shape().pixels();
  const size_t image_floats = pixels * channels;
  const size_t chunk = std::max<size_t>(1, kChunkFloats / image_floats);
  for (size_t first = 0; first < images; first += chunk) {
    for (size_t y = 0; y < kernel_.side; ++y) {
      neural_kernels().multiply_gathered(
          {input.data() + first * input_.image_floats() + y * input_.row_floats(), pixels_.data(), false,
           first > 0, std::min(chunk, images - first), input_.image_floats(),
           output_gradient_.data() + first * image_floats, channels, image_floats,
           weights_.gradient.values.data() + y * rows * channels, channels, rows, channels, pixels});
    }
  }
}

void Convolution::input_gradient(size_t images, Images* gradient) {
  const ImageShape& shape = output_.shape();
  for (size_t image = 0; image < images; ++image) {
    for (size_t y = 0; y < shape.height; ++y)
      std::copy_n(output_gradient_.row(image, y), shape.row_floats(), bordered_.row(image, y));
  }
  for (const Phase& phase : phases_) phase_gradient(phase, images, gradient);
}

void Convolution::phase_gradient(const Phase& phase, size_t images, Images* gradient) {
  const NeuralKernels& kernels = neural_kernels();
  const size_t in = input_.channels;
  const size_t out = output_.shape().channels;
  float* turned = turned_.data();
  for (const size_t row : phase.rows) {
    for (const size_t column : phase.columns) {
      kernels.transpose(weights_.values.values.data() + (row * kernel_.side + column) * in * out, in, out,
                        turned, in);
      turned += in * out;
    }
  }
  const bool alone = phases_.size() == 1;
  float* to = alone ? gradient->data() : phase_pixels_.data();
  const size_t pixels = images * phase.height * phase.width;
  const size_t depth = phase.columns.size() * out;
  if (phase.pixels.empty()) {
    std::fill_n(to, pixels * in, 0.0f);
  } else {
    kernels.multiply_gathered({bordered_.data(), phase.pixels.data(), true, false, phase.rows.size(),
                               bordered_.shape().row_floats(), turned_.data(), in, depth * in, to, in, pixels,
                               in, depth});
  }
  if (alone) return;
  for (size_t image = 0; image < images; ++image) {
    for (size_t row = 0; row < phase.height; ++row) {
      float* line = gradient->row(image, phase.y + row * kernel_.stride) + phase.x * in;
      for (size_t column = 0; column < phase.width; ++column, to += in)
        std::copy_n(to, in, line + column * kernel_.stride * in);
    }
  }
}

void Convolution::backward(const Images& input, size_t images, Images* gradient) {
  weight_gradient(input, images);
  if (gradient != nullptr) input_gradient(images, gradient);
}

}  // namespace bitfed
