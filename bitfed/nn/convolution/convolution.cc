#include "bitfed/nn/convolution/convolution.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "bitfed/nn/kernels/panels.h"

namespace bitfed {

Convolution::Convolution(size_t batch, const ImageShape& input, size_t channels, const std::string& name,
                         const ConvolutionKernel& kernel)
    : AddingLayer(batch, padded_shape(kernel.steps(input.height), kernel.steps(input.width), channels, 0),
                  GradientPlace::kOutput),
      input_(input),
      kernel_(kernel),
      weights_(name + ".weights", kernel.taps() * input.channels, channels, false,
               {input.channels, input.used_channels()}) {
  weights_.decays = true;
  pixels_ = patch_offsets(batch, input, kernel);
  const size_t columns = kernel.side * input.channels;
  for (size_t i = 0; i < weights_.values.rows; ++i)
    inputs_.push_back(static_cast<uint32_t>(i / columns * input.row_floats() + i % columns));
  panel_ = Floats(kPanelColumns *
                  std::max({kernel.taps() * input.channels, kernel.taps() * output_.shape().channels,
                            chunk_images() * output_.shape().pixels()}));
  if (input.channels % kLanes != 0) {  // a first layer
    of_image_ = Floats(weights_.gradient.values.size());
    return;
  }
  sparse_.emplace(input, output_.shape(), kernel);
  bordered_ = Images(batch, output_.shape().with_border(kernel.gradient_border()));
  phases_ = convolution_phases(batch, input, bordered_.shape(), kernel);
  if (phases_.size() > 1)
    phase_pixels_ = Floats(batch * phases_[0].height * phases_[0].width * input.channels);
}

void Convolution::on_initialise(RandomStream random) {
  const double limit = 1 / std::sqrt(static_cast<double>(weights_.used_rows()));
  std::vector<float> values(weights_.count());
  for (float& value : values) value = static_cast<float>(limit * (2 * random.uniform() - 1));
  weights_.assign(values);
}

void Convolution::forward(const Images& input, size_t images, Pass /*pass*/) {
  const size_t channels = output_.shape().channels;
  const Matrix& weights = weights_.values;
  for_each_panel(channels, [&](const Panel& panel) {
    const float* columns = copy_panel(weights.row(0), weights.rows, channels, panel, panel_.data());
    neural_kernels().multiply_gathered({input.data(), pixels_.data(), nullptr, false, kernel_.side,
                                        input_.row_floats(), columns, output_.data() + panel.first, channels,
                                        images * output_.shape().pixels(), panel.width,
                                        kernel_.side * input_.channels});
  });
}

size_t Convolution::chunk_images() const {
  constexpr size_t kChunkFloats = 32768;
  return std::max<size_t>(1, kChunkFloats / output_.shape().image_floats());
}

// The sum over pixels is one chain. A first layer has few weights and many pixels: there each image has a
// chain of its own, so that a device with many threads can work on all images at once, and the images' sums
// are added in sequence.
void Convolution::backward_to_weights(const Images& input, size_t images) {
  const size_t channels = output_.shape().channels;
  const size_t pixels = output_.shape().pixels();
  Matrix& gradient = weights_.gradient;
  const bool by_image = of_image_.size() > 0;
  const size_t chunk = by_image ? 1 : chunk_images();
  for (size_t first = 0; first < images; first += chunk) {
    const size_t count = std::min(chunk, images - first);
    const bool apart = by_image && first > 0;
    for_each_panel(channels, [&](const Panel& panel) {
      const float* columns = copy_panel(output_gradient().data() + first * pixels * channels, count * pixels,
                                        channels, panel, panel_.data());
      float* to = (apart ? of_image_.data() : gradient.row(0)) + panel.first;
      neural_kernels().multiply_gathered({input.data() + first * input_.image_floats(), inputs_.data(),
                                          pixels_.data(), first > 0 && !apart, count, input_.image_floats(),
                                          columns, to, channels, gradient.rows, panel.width, pixels});
    });
    if (apart) neural_kernels().add(gradient.row(0), of_image_.data(), of_image_.size(), gradient.row(0));
  }
}

void Convolution::backward_to_input(size_t images, bool adds, Images* gradient) {
  const ImageShape& shape = output_.shape();
  for (size_t image = 0; image < images; ++image) {
    for (size_t y = 0; y < shape.height; ++y)
      std::copy_n(output_gradient().row(image, y), shape.row_floats(), bordered_.row(image, y));
  }
  for (const ConvolutionPhase& phase : phases_) phase_gradient(phase, images, adds, gradient);
}

void Convolution::phase_gradient(const ConvolutionPhase& phase, size_t images, bool adds, Images* gradient) {
  if (adds && phase.pixels.empty()) return;
  const NeuralKernels& kernels = neural_kernels();
  const size_t in = input_.channels;
  const size_t out = output_.shape().channels;
  float* to = phase.is_all() ? gradient->data() : phase_pixels_.data();
  const size_t pixels = images * phase.height * phase.width;
  const size_t depth = phase.columns.size() * out;
  if (phase.pixels.empty()) {
    std::fill_n(to, pixels * in, 0.0f);
  } else {
    // Weights by output channel, the kernel's taps in reverse.
    for_each_panel(in, [&](const Panel& panel) {
      float* transposed = panel_.data();
      for (const size_t row : phase.rows) {
        for (const size_t column : phase.columns) {
          const size_t tap = row * kernel_.side + column;
          kernels.transpose(weights_.values.row(tap * in + panel.first), panel.width, out, transposed,
                            panel.width);
          transposed += panel.width * out;
        }
      }
      kernels.multiply_gathered({bordered_.data(), phase.pixels.data(), nullptr, adds && phase.is_all(),
                                 phase.rows.size(), bordered_.shape().row_floats(), panel_.data(),
                                 to + panel.first, in, pixels, panel.width, depth});
    });
  }
  if (!phase.is_all()) phase.put(to, images, adds, gradient);
}

void Convolution::backward_to_both(const Images& input, size_t images, bool adds, Images* gradient) {
  const bool is_sparse = sparse_ && sparse_->take(output_gradient(), images);
  if (is_sparse) {
    sparse_->weights_gradient(input, pixels_, &weights_.gradient);
  } else {
    backward_to_weights(input, images);
  }
  if (gradient == nullptr) return;
  // Several phases are added when their sums are done.
  if (is_sparse && !(adds && phases_.size() > 1)) {
    sparse_->input_gradient(weights_.values, pixels_, adds, gradient);
  } else {
    backward_to_input(images, adds, gradient);
  }
}

void Convolution::backward(const Images& input, size_t images, Images* gradient) {
  backward_to_both(input, images, false, gradient);
}

void Convolution::backward_adding(const Images& input, size_t images, const Images& other, Images* gradient) {
  if (&other != gradient)
    std::copy_n(other.data(), images * gradient->shape().image_floats(), gradient->data());
  backward_to_both(input, images, true, gradient);
}

}  // namespace bitfed
