#include "bitfed/nn/convolution.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace bitfed {
namespace {

constexpr size_t kSide = 3;
constexpr size_t kChunkFloats = 32768;  // of gradients that are worked off together: they stay in the cache

std::vector<uint32_t> patch_places(size_t batch, const ImageShape& shape) {
  std::vector<uint32_t> places;
  places.reserve(batch * shape.pixels());
  for (size_t image = 0; image < batch; ++image) {
    for (size_t y = 0; y < shape.height; ++y) {
      for (size_t x = 0; x < shape.width; ++x) {
        const size_t at = image * shape.image_floats() + y * shape.row_floats() + x * shape.channels;
        places.push_back(static_cast<uint32_t>(at));
      }
    }
  }
  return places;
}

}  // namespace

Convolution::Convolution(size_t batch, const ImageShape& input, size_t channels, const std::string& name)
    : Layer(batch, {input.height, input.width, channels, 0}),
      input_(input),
      weights_(name + ".weights", kSide * kSide * input.channels, channels) {
  assert(input.border == 1 && channels % kLanes == 0);
  pixels_ = patch_places(batch, input);
  if (input.channels % kLanes != 0) return;  // a first layer: nobody asks for its input's gradient
  bordered_ = Images(batch, {input.height, input.width, channels, 1});
  gradient_pixels_ = patch_places(batch, bordered_.shape());
  turned_ = Floats(weights_.count());
}

void Convolution::start(RandomStream random) {
  const double limit = 1 / std::sqrt(static_cast<double>(kSide * kSide * input_.channels));
  for (size_t i = 0; i < weights_.count(); ++i)
    weights_.values.values[i] = static_cast<float>(limit * (2 * random.uniform() - 1));
}

void Convolution::forward(const Images& input, size_t images, Pass /*pass*/) {
  const size_t channels = output_.shape().channels;
  const size_t depth = kSide * input_.channels;
  neural_kernels().multiply_gathered({input.data(), pixels_.data(), true, false, kSide, input_.row_floats(),
                                      weights_.values.values.data(), channels, depth * channels,
                                      output_.data(), channels, images * input_.pixels(), channels, depth});
}

void Convolution::weight_gradient(const Images& input, size_t images) {
  const size_t channels = output_.shape().channels;
  const size_t rows = kSide * input_.channels;
  const size_t image_floats = input_.pixels() * channels;
  const size_t chunk = std::max<size_t>(1, kChunkFloats / image_floats);
  for (size_t first = 0; first < images; first += chunk) {
    for (size_t y = 0; y < kSide; ++y) {
      neural_kernels().multiply_gathered(
          {input.data() + first * input_.image_floats() + y * input_.row_floats(), pixels_.data(), false,
           first > 0, std::min(chunk, images - first), input_.image_floats(),
           output_gradient_.data() + first * image_floats, channels, image_floats,
           weights_.gradient.values.data() + y * rows * channels, channels, rows, channels, input_.pixels()});
    }
  }
}

void Convolution::input_gradient(size_t images, Images* gradient) {
  const NeuralKernels& kernels = neural_kernels();
  const size_t in = input_.channels;
  const size_t out = output_.shape().channels;
  for (size_t tap = 0; tap < kSide * kSide; ++tap) {
    kernels.transpose(weights_.values.values.data() + tap * in * out, in, out,
                      turned_.data() + (kSide * kSide - 1 - tap) * in * out, in);
  }
  const ImageShape& shape = output_.shape();
  for (size_t image = 0; image < images; ++image) {
    for (size_t y = 0; y < shape.height; ++y)
      std::copy_n(output_gradient_.row(image, y), shape.row_floats(), bordered_.row(image, y));
  }
  const size_t depth = kSide * out;
  kernels.multiply_gathered({bordered_.data(), gradient_pixels_.data(), true, false, kSide,
                             bordered_.shape().row_floats(), turned_.data(), in, depth * in, gradient->data(),
                             in, images * input_.pixels(), in, depth});
}

void Convolution::backward(const Images& input, size_t images, Images* gradient) {
  weight_gradient(input, images);
  if (gradient != nullptr) input_gradient(images, gradient);
}

}  // namespace bitfed
