#pragma once

// Layers by plain loops in double precision, for the tests of gradients.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bitfed/nn/layers/images.h"

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

// Weights by row and column of the kernel, input channel, output channel; zeros beyond the edge.
inline Batch convolve(const Batch& x, const Values& weights, size_t out, size_t side, size_t stride) {
  Batch y{(x.height - 1) / stride + 1, (x.width - 1) / stride + 1, out, {}};
  for (const Values& image : x.images) {
    Values& to = y.images.emplace_back(y.pixels() * out);
    for (size_t row = 0; row < y.height; ++row) {
      for (size_t column = 0; column < y.width; ++column) {
        for (size_t tap = 0; tap < side * side; ++tap) {
          const size_t from_row = row * stride + tap / side - side / 2;  // wraps around where it is outside
          const size_t from_column = column * stride + tap % side - side / 2;
          if (from_row >= x.height || from_column >= x.width) continue;
          for (size_t a = 0; a < x.channels; ++a) {
            const double value = image[(from_row * x.width + from_column) * x.channels + a];
            for (size_t o = 0; o < out; ++o)
              to[(row * y.width + column) * out + o] += value * weights[(tap * x.channels + a) * out + o];
          }
        }
      }
    }
  }
  return y;
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
