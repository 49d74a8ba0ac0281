#include "bitfed/nn/convolution.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace bitfed {
namespace {

constexpr size_t kChunkFloats = 32768;  // of gradients that are worked off together: they stay in the cache

}  // namespace

Convolution::Convolution(size_t batch, const ImageShape& input, size_t channels, const std::string& name,
                         const ConvolutionKernel& kernel)
    : Layer(batch, shape_of_lanes(kernel.steps(input.height), kernel.steps(input.width), channels, 0)),
      input_(input),
      kernel_(kernel),
      weights_(name + ".weights", kernel.taps() * input.channels, channels, false,
               {input.channels, input.used_channels()}) {
  assert(input.border == 1 && (kernel.side == 1 || kernel.side == 3));
  pixels_ = patch_places(batch, input, kernel);
  if (input.channels % kLanes != 0) return;  // a first layer: nobody asks for its input's gradient
  bordered_ = Images(batch, output_.shape().with_border(1));
  phases_ = convolution_phases(batch, input, bordered_.shape(), kernel);
  turned_ = Floats(weights_.values.values.size());
  if (phases_.size() > 1)
    phase_pixels_ = Floats(batch * phases_[0].height * phases_[0].width * input.channels);
}

void Convolution::start(RandomStream random) {
  const double limit = 1 / std::sqrt(static_cast<double>(weights_.used_rows()));
  std::vector<float> numbers(weights_.count());
  for (float& number : numbers) number = static_cast<float>(limit * (2 * random.uniform() - 1));
  weights_.assign(numbers);
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
  for (const ConvolutionPhase& phase : phases_) phase_gradient(phase, images, gradient);
}

void Convolution::phase_gradient(const ConvolutionPhase& phase, size_t images, Images* gradient) {
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
  float* to = phase.is_all() ? gradient->data() : phase_pixels_.data();
  const size_t pixels = images * phase.height * phase.width;
  const size_t depth = phase.columns.size() * out;
  if (phase.pixels.empty()) {
    std::fill_n(to, pixels * in, 0.0f);
  } else {
    kernels.multiply_gathered({bordered_.data(), phase.pixels.data(), true, false, phase.rows.size(),
                               bordered_.shape().row_floats(), turned_.data(), in, depth * in, to, in, pixels,
                               in, depth});
  }
  if (!phase.is_all()) phase.put(to, images, gradient);
}

void Convolution::backward(const Images& input, size_t images, Images* gradient) {
  weight_gradient(input, images);
  if (gradient != nullptr) input_gradient(images, gradient);
}

}  // namespace bitfed
