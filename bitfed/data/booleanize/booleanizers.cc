#include "bitfed/data/booleanize/booleanizers.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace bitfed {
namespace {

// Packs one row of an image, one bit per byte. With as many planes as channels, the order of the bytes
// (column, then channel) is the order of the bits (column, then plane).
template <typename Test>
void pack_row(size_t bytes, uint64_t* words, Test test) {
  for (size_t begin = 0; begin < bytes; begin += kWordBits) {
    const size_t count = std::min(kWordBits, bytes - begin);
    uint64_t word = 0;
    for (size_t bit = 0; bit < count; ++bit) word |= uint64_t{test(begin + bit)} << bit;
    words[begin / kWordBits] = word;
  }
}

class Threshold : public Booleanizer {
 public:
  Threshold(const BooleanizerSpec& spec, const SampleShape& shape) : level_(spec.level), shape_(shape) {}

 private:
  void fill_bits(const Samples& samples, BitImages* images) override {
    const size_t row_bytes = shape_.width * shape_.channels;
    const uint8_t* pixels = samples.pixels;
    for (size_t row = 0; row < samples.count * shape_.height; ++row, pixels += row_bytes)
      pack_row(row_bytes, images->bits.row(row), [&](size_t i) { return pixels[i] > level_; });
  }

  int level_;
  SampleShape shape_;
};

// The Gaussian mean around every byte of an image, each channel by itself, the border replicated. The kernel
// is separable: rows are averaged first, then columns. Sums of products of bytes and the weights below are
// exact in double precision along a row and nearly exact along a column: OpenCV's single-precision sums
// differ only where the mean lies within about 1e-5 of a half.
class GaussianMean {
 public:
  GaussianMean(int window, size_t height, size_t width, size_t channels)
      : weights_(gaussian_weights(window)),
        height_(height),
        width_(width),
        channels_(channels),
        padded_((width + 2 * radius()) * channels),
        rows_(height * width * channels),
        mean_(width * channels) {}

  void load(const uint8_t* pixels) {
    const size_t row_bytes = width_ * channels_;
    for (size_t y = 0; y < height_; ++y) average_row(pixels + y * row_bytes, rows_.data() + y * row_bytes);
  }

  // The means of row y of the loaded image; valid until the next call.
  const double* row(size_t y) {
    const size_t row_bytes = width_ * channels_;
    const double* middle = rows_.data() + y * row_bytes;
    for (size_t i = 0; i < row_bytes; ++i) mean_[i] = weights_[0] * middle[i];
    for (size_t k = 1; k <= radius(); ++k) {
      // Beyond the border the first or the last row is repeated.
      const double* above = rows_.data() + (y - std::min(y, k)) * row_bytes;
      const double* below = rows_.data() + std::min(y + k, height_ - 1) * row_bytes;
      add_pair(weights_[k], above, below, mean_.data());
    }
    return mean_.data();
  }

 private:
  size_t radius() const { return weights_.size() - 1; }

  void average_row(const uint8_t* pixels, double* result) {
    const size_t row_bytes = width_ * channels_;
    const size_t border = radius() * channels_;
    for (size_t i = 0; i < border; ++i) {
      padded_[i] = pixels[i % channels_];
      padded_[border + row_bytes + i] = pixels[row_bytes - channels_ + i % channels_];
    }
    std::copy(pixels, pixels + row_bytes, padded_.begin() + static_cast<std::ptrdiff_t>(border));
    const double* middle = padded_.data() + border;
    for (size_t i = 0; i < row_bytes; ++i) result[i] = weights_[0] * middle[i];
    for (size_t k = 1; k <= radius(); ++k) {
      add_pair(weights_[k], middle - k * channels_, middle + k * channels_, result);
    }
  }

  void add_pair(double weight, const double* left, const double* right, double* sum) const {
    const size_t row_bytes = width_ * channels_;
    for (size_t i = 0; i < row_bytes; ++i) sum[i] += weight * (left[i] + right[i]);
  }

  std::vector<double> weights_;
  size_t height_;
  size_t width_;
  size_t channels_;
  std::vector<double> padded_;  // one row of the image with its borders
  std::vector<double> rows_;    // the image averaged along rows
  std::vector<double> mean_;    // one row averaged along rows and columns
};

// Rounds half to even, for 0 <= value < 2^51: adding 1.5 * 2^52 leaves no bits for the fraction.
double round_half_even(double value) {
  constexpr double kShift = 0x1.8p52;
  return (value + kShift) - kShift;
}

class AdaptiveGaussian : public Booleanizer {
 public:
  AdaptiveGaussian(const BooleanizerSpec& spec, const SampleShape& shape)
      : offset_(spec.offset), shape_(shape), mean_(spec.window, shape.height, shape.width, shape.channels) {}

 private:
  void fill_bits(const Samples& samples, BitImages* images) override {
    if (shape_.count() == 0) return;
    const size_t row_bytes = shape_.width * shape_.channels;
    const uint8_t* pixels = samples.pixels;
    for (size_t sample = 0; sample < samples.count; ++sample) {
      mean_.load(pixels);
      for (size_t y = 0; y < shape_.height; ++y, pixels += row_bytes) {
        const double* means = mean_.row(y);
        pack_row(row_bytes, images->bits.row(sample * shape_.height + y),
                 [&](size_t i) { return pixels[i] - round_half_even(means[i]) > -offset_; });
      }
    }
  }

  int offset_;
  SampleShape shape_;
  GaussianMean mean_;
};

// The planes of each pixel value as a word: plane z is set if pixel >= (z + 1) * 255 / (levels + 1), computed
// in integers.
std::array<uint64_t, 256> thermometer_codes(int levels) {
  std::array<uint64_t, 256> codes{};
  for (int pixel = 0; pixel < 256; ++pixel) {
    for (int z = 0; z < levels; ++z) {
      const bool reached = pixel * (levels + 1) >= (z + 1) * 255;
      codes[static_cast<size_t>(pixel)] |= uint64_t{reached} << z;
    }
  }
  return codes;
}

class ColourThermometer : public Booleanizer {
 public:
  ColourThermometer(const BooleanizerSpec& spec, const SampleShape& shape)
      : codes_(thermometer_codes(spec.levels)), levels_(static_cast<size_t>(spec.levels)), shape_(shape) {}

 private:
  void fill_bits(const Samples& samples, BitImages* images) override {
    const size_t row_bytes = shape_.width * shape_.channels;
    const uint8_t* pixels = samples.pixels;
    for (size_t row = 0; row < samples.count * shape_.height; ++row) {
      uint64_t* words = images->bits.row(row);
      std::fill_n(words, images->bits.stride(), uint64_t{0});
      for (size_t i = 0; i < row_bytes; ++i) {
        // The planes of a channel may straddle two words.
        const uint64_t code = codes_[*pixels++];
        const size_t word = i * levels_ / kWordBits;
        const size_t shift = i * levels_ % kWordBits;
        words[word] |= code << shift;
        if (shift + levels_ > kWordBits) words[word + 1] |= code >> (kWordBits - shift);
      }
    }
  }

  std::array<uint64_t, 256> codes_;
  size_t levels_;
  SampleShape shape_;
};

class Quantile : public Booleanizer {
 public:
  Quantile(const BooleanizerSpec& spec, const SampleShape&) : cuts_(spec.cuts) {}

 private:
  void fill_bits(const Samples& samples, BitImages* images) override {
    const float* value = samples.values;
    for (size_t sample = 0; sample < samples.count; ++sample) {
      uint64_t* words = images->bits.row(sample);
      std::fill_n(words, images->bits.stride(), uint64_t{0});
      size_t plane = 0;
      for (const std::vector<float>& cuts : cuts_) {
        for (const float cut : cuts) {
          if (*value > cut) set_bit(words, plane);
          ++plane;
        }
        ++value;
      }
    }
  }

  std::vector<std::vector<float>> cuts_;
};

}  // namespace

// Half of OpenCV's Gaussian kernel for `window` without a given sigma, the middle first. Up to 9: OpenCV's
// table of dyadic weights. Above: exp(-x^2 / 2 sigma^2) divided by the sum, with sigma as documented for
// getGaussianKernel. Weights are rounded to single precision as in OpenCV.
std::vector<double> gaussian_weights(int window) {
  switch (window) {
    case 3:
      return {128 / 256.0, 64 / 256.0};
    case 5:
      return {96 / 256.0, 64 / 256.0, 16 / 256.0};
    case 7:
      return {72 / 256.0, 56 / 256.0, 28 / 256.0, 8 / 256.0};
    case 9:
      return {60 / 256.0, 51 / 256.0, 30 / 256.0, 13 / 256.0, 4 / 256.0};
    default:
      break;
  }
  const double sigma = 0.3 * ((window - 1) * 0.5 - 1) + 0.8;
  std::vector<double> weights;
  double sum = 0;
  for (int x = 0; x <= window / 2; ++x) {
    weights.push_back(std::exp(-x * x / (2 * sigma * sigma)));
    sum += x == 0 ? weights.back() : 2 * weights.back();
  }
  for (double& weight : weights) weight = static_cast<float>(weight / sum);
  return weights;
}

std::unique_ptr<Booleanizer> make_threshold(const BooleanizerSpec& spec, const SampleShape& shape) {
  return std::make_unique<Threshold>(spec, shape);
}

std::unique_ptr<Booleanizer> make_adaptive_gaussian(const BooleanizerSpec& spec, const SampleShape& shape) {
  return std::make_unique<AdaptiveGaussian>(spec, shape);
}

std::unique_ptr<Booleanizer> make_colour_thermometer(const BooleanizerSpec& spec, const SampleShape& shape) {
  return std::make_unique<ColourThermometer>(spec, shape);
}

std::unique_ptr<Booleanizer> make_quantile(const BooleanizerSpec& spec, const SampleShape& shape) {
  return std::make_unique<Quantile>(spec, shape);
}

}  // namespace bitfed
