#pragma once

// Layers by plain loops in double precision, for the tests of gradients.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bitfed/nn/convolution/convolution_geometry.h"

namespace bitfed::plain {

using Values = std::vector<double>;

// A batch of images without borders.
struct Batch {
  size_t height = 0;
  size_t width = 0;
  size_t channels = 0;
  std::vector<Values> images;

  size_t pixels() const { return height * width; }
};

inline Batch batch_of(const Images& from, size_t images) {
  const ImageShape& shape = from.shape();
  Batch batch{shape.height, shape.width, shape.channels, std::vector<Values>(images)};
  for (size_t i = 0; i < images; ++i) {
    for (size_t y = 0; y < shape.height; ++y)
      batch.images[i].insert(batch.images[i].end(), from.row(i, y),
                             from.row(i, y) + shape.width * shape.channels);
  }
  return batch;
}

// An image's size after a convolution: as many steps as fit into the padded image.
inline size_t steps(size_t pixels, const ConvolutionKernel& kernel) {
  const size_t padding = kernel.valid ? 0 : kernel.side / 2;
  size_t count = 0;
  while (count * kernel.stride + kernel.side <= pixels + 2 * padding) ++count;
  return count;
}

// body(output pixel, input pixel, tap): all that meet in an image of height x width; zeros beyond the edge.
template <typename Body>
void for_each_tap(size_t height, size_t width, const ConvolutionKernel& kernel, Body body) {
  const size_t padding = kernel.valid ? 0 : kernel.side / 2;
  const size_t columns = steps(width, kernel);
  for (size_t pixel = 0; pixel < steps(height, kernel) * columns; ++pixel) {
    for (size_t tap = 0; tap < kernel.side * kernel.side; ++tap) {
      // They wrap around where they are outside.
      const size_t row = pixel / columns * kernel.stride + tap / kernel.side - padding;
      const size_t column = pixel % columns * kernel.stride + tap % kernel.side - padding;
      if (row < height && column < width) body(pixel, row * width + column, tap);
    }
  }
}

// Weights by row and column of the kernel, input channel, output channel.
inline Batch convolve(const Batch& x, const Values& weights, size_t out, const ConvolutionKernel& kernel) {
  Batch y{steps(x.height, kernel), steps(x.width, kernel), out, {}};
  for (const Values& image : x.images) {
    Values& to = y.images.emplace_back(y.pixels() * out);
    for_each_tap(x.height, x.width, kernel, [&](size_t pixel, size_t from, size_t tap) {
      for (size_t a = 0; a < x.channels; ++a) {
        const double value = image[from * x.channels + a];
        const double* row = weights.data() + (tap * x.channels + a) * out;
        for (size_t o = 0; o < out; ++o) to[pixel * out + o] += value * row[o];
      }
    });
  }
  return y;
}

// The gradients of sum(output * g).
struct ConvolutionGradients {
  std::vector<Values> inputs;  // an image each
  Values weights;
};

inline ConvolutionGradients convolve_back(const Batch& x, const Values& weights, const Batch& g,
                                          const ConvolutionKernel& kernel) {
  const size_t out = g.channels;
  ConvolutionGradients gradients{{}, Values(weights.size())};
  for (size_t i = 0; i < x.images.size(); ++i) {
    Values& of_input = gradients.inputs.emplace_back(x.images[i].size());
    for_each_tap(x.height, x.width, kernel, [&](size_t pixel, size_t from, size_t tap) {
      for (size_t a = 0; a < x.channels; ++a) {
        const size_t row = (tap * x.channels + a) * out;
        const double value = x.images[i][from * x.channels + a];
        double sum = 0;
        for (size_t o = 0; o < out; ++o) {
          const double gradient = g.images[i][pixel * out + o];
          sum += gradient * weights[row + o];
          gradients.weights[row + o] += gradient * value;
        }
        of_input[from * x.channels + a] += sum;
      }
    });
  }
  return gradients;
}

inline Batch normalise(Batch x, const Values& scale, const Values& shift) {
  const double count = static_cast<double>(x.images.size() * x.pixels());
  for (size_t c = 0; c < x.channels; ++c) {
    double mean = 0;
    double variance = 0;
    for (const Values& image : x.images) {
      for (size_t k = c; k < image.size(); k += x.channels) mean += image[k] / count;
    }
    for (const Values& image : x.images) {
      for (size_t k = c; k < image.size(); k += x.channels)
        variance += (image[k] - mean) * (image[k] - mean) / count;
    }
    for (Values& image : x.images) {
      for (size_t k = c; k < image.size(); k += x.channels)
        image[k] = (image[k] - mean) / std::sqrt(variance + 1e-5) * scale[c] + shift[c];
    }
  }
  return x;
}

inline Batch add(Batch x, const Batch& y) {
  for (size_t i = 0; i < x.images.size(); ++i) {
    for (size_t k = 0; k < x.images[i].size(); ++k) x.images[i][k] += y.images[i][k];
  }
  return x;
}

inline Batch clip(Batch x, double low, double high) {
  for (Values& image : x.images) {
    for (double& value : image) value = std::clamp(value, low, high);
  }
  return x;
}

inline Batch mean_of_pixels(const Batch& x) {
  Batch y{1, 1, x.channels, {}};
  for (const Values& image : x.images) {
    Values& to = y.images.emplace_back(x.channels);
    for (size_t k = 0; k < image.size(); ++k)
      to[k % x.channels] += image[k] / static_cast<double>(x.pixels());
  }
  return y;
}

// The mean cross-entropy of a dense layer's outputs; rows of the weights are `stride` apart.
inline double loss(const Batch& x, const Values& weights, size_t stride, const Values& bias, size_t classes,
                   const std::vector<uint16_t>& labels) {
  double sum = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    Values logits(bias.begin(), bias.begin() + static_cast<std::ptrdiff_t>(classes));
    for (size_t k = 0; k < x.images[i].size(); ++k) {
      for (size_t o = 0; o < classes; ++o) logits[o] += x.images[i][k] * weights[k * stride + o];
    }
    double exponentials = 0;
    for (const double logit : logits) exponentials += std::exp(logit);
    sum += (std::log(exponentials) - logits[labels[i]]) / static_cast<double>(labels.size());
  }
  return sum;
}

}  // namespace bitfed::plain
