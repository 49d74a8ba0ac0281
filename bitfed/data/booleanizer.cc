#include "bitfed/data/booleanizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "bitfed/base/error.h"
#include "bitfed/base/names.h"

namespace bitfed {
namespace {

constexpr int kMostLevel = 255;
constexpr int kMostWindow = 255;
constexpr int kMostOffset = 255;
constexpr int kMostLevels = 64;  // the planes of one channel fit a word
constexpr int kMostBins = 256;

void expect_range(const char* key, int64_t found, int64_t least, int64_t most) {
  if (found < least || found > most) {
    throw input_error("booleanize.{} = {}: expected {} to {}", key, found, least, most);
  }
}

// One row of an image in, one row of packed bits out, a bit for each byte: with as many planes as channels
// the order of bytes (column, then channel) is the order of bits (column, then plane).
template <typename Test>
void pack_row(size_t bytes, uint64_t* words, Test test) {
  for (size_t begin = 0; begin < bytes; begin += kWordBits) {
    const size_t count = std::min(kWordBits, bytes - begin);
    uint64_t word = 0;
    for (size_t bit = 0; bit < count; ++bit) word |= uint64_t{test(begin + bit)} << bit;
    words[begin / kWordBits] = word;
  }
}

void fill_threshold(const BooleanizerSpec& spec, const Dataset& dataset, BitImages& result) {
  const size_t row_bytes = dataset.width * dataset.channels;
  const uint8_t* pixels = dataset.pixels.data();
  for (size_t row = 0; row < result.bits.rows(); ++row, pixels += row_bytes) {
    pack_row(row_bytes, result.bits.row(row), [&](size_t i) { return pixels[i] > spec.level; });
  }
}

// The Gaussian mean around every byte of an image, the border replicated, channels apart. The kernel is a
// product, so rows are averaged first, then columns. Sums of products of bytes and the weights above are
// exact in double precision along a row and nearly so along a column: OpenCV's own single-precision sums
// differ from ours only where the mean lies within about 1e-5 of a half.
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
  std::vector<double> mean_;    // one row averaged both ways
};

// Half to even, for 0 <= value < 2^51: adding 1.5 * 2^52 leaves no bits for the fraction.
double round_half_even(double value) {
  constexpr double kShift = 0x1.8p52;
  return (value + kShift) - kShift;
}

void fill_adaptive_gaussian(const BooleanizerSpec& spec, const Dataset& dataset, BitImages& result) {
  if (dataset.image_bytes() == 0) return;
  GaussianMean mean(spec.window, dataset.height, dataset.width, dataset.channels);
  const size_t row_bytes = dataset.width * dataset.channels;
  for (size_t sample = 0; sample < dataset.size(); ++sample) {
    const uint8_t* pixels = dataset.image(sample).data();
    mean.load(pixels);
    for (size_t y = 0; y < dataset.height; ++y, pixels += row_bytes) {
      const double* means = mean.row(y);
      pack_row(row_bytes, result.bits.row(sample * dataset.height + y),
               [&](size_t i) { return pixels[i] - round_half_even(means[i]) > -spec.offset; });
    }
  }
}

// A pixel's planes as a word: ones up to the highest level reached. pixel >= (z + 1) * 255 / (levels + 1)
// in whole numbers.
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

void fill_thermometer(const BooleanizerSpec& spec, const Dataset& dataset, BitImages& result) {
  const auto codes = thermometer_codes(spec.levels);
  const auto levels = static_cast<size_t>(spec.levels);
  const size_t row_bytes = dataset.width * dataset.channels;
  const uint8_t* pixels = dataset.pixels.data();
  for (size_t row = 0; row < result.bits.rows(); ++row) {
    uint64_t* words = result.bits.row(row);
    for (size_t i = 0; i < row_bytes; ++i) {
      const uint64_t code = codes[*pixels++];
      const size_t word = i * levels / kWordBits;
      const size_t shift = i * levels % kWordBits;
      words[word] |= code << shift;
      if (shift + levels > kWordBits) words[word + 1] |= code >> (kWordBits - shift);
    }
  }
}

void fill_quantile(const BooleanizerSpec& spec, const Dataset& dataset, BitImages& result) {
  for (size_t sample = 0; sample < dataset.size(); ++sample) {
    uint64_t* words = result.bits.row(sample);
    const auto values = dataset.row(sample);
    size_t plane = 0;
    for (size_t column = 0; column < values.size(); ++column) {
      for (const float cut : spec.cuts[column]) {
        if (values[column] > cut) set_bit(words, plane);
        ++plane;
      }
    }
  }
}

size_t channel_planes(const BooleanizerSpec&, const Dataset& dataset) {
  return dataset.channels;
}

size_t threshold_planes(const BooleanizerSpec& spec, const Dataset& dataset) {
  expect_range("level", spec.level, 0, kMostLevel);
  return channel_planes(spec, dataset);
}

size_t adaptive_planes(const BooleanizerSpec& spec, const Dataset& dataset) {
  expect_range("window", spec.window, 3, kMostWindow);
  expect_range("offset", spec.offset, -kMostOffset, kMostOffset);
  if (spec.window % 2 == 0) throw input_error("booleanize.window = {}: expected an odd number", spec.window);
  return channel_planes(spec, dataset);
}

size_t thermometer_planes(const BooleanizerSpec& spec, const Dataset& dataset) {
  expect_range("levels", spec.levels, 1, kMostLevels);
  return dataset.channels * static_cast<size_t>(spec.levels);
}

// Cuts may come from a file: they must be ordered, which also rules out NaN.
void check_cuts(const std::vector<float>& cuts, const std::string& column) {
  for (size_t i = 0; i < cuts.size(); ++i) {
    if (std::isnan(cuts[i]) || (i > 0 && !(cuts[i - 1] < cuts[i]))) {
      throw input_error("booleanize.cuts of column '{}': number {} is {}, expected ascending numbers", column,
                        i, cuts[i]);
    }
  }
}

size_t quantile_planes(const BooleanizerSpec& spec, const Dataset& dataset) {
  if (spec.cuts.empty()) throw input_error("booleanize.cuts: none, expected cuts fitted to {}", dataset.name);
  if (spec.cuts.size() != dataset.columns.size()) {
    throw input_error("booleanize.cuts: found cuts for {} columns, {} has {}", spec.cuts.size(), dataset.name,
                      dataset.columns.size());
  }
  size_t planes = 0;
  for (size_t column = 0; column < spec.cuts.size(); ++column) {
    check_cuts(spec.cuts[column], dataset.columns[column]);
    planes += spec.cuts[column].size();
  }
  if (planes == 0) {
    throw input_error("booleanize.cuts: none for any column of {}, expected one that takes two values",
                      dataset.name);
  }
  return planes;
}

std::vector<size_t> single_bits(const BooleanizerSpec&, size_t planes) {
  return std::vector<size_t>(planes, 1);
}

std::vector<size_t> colour_levels(const BooleanizerSpec& spec, size_t planes) {
  const auto levels = static_cast<size_t>(spec.levels);
  return std::vector<size_t>(planes / levels, levels);
}

// Columns that were cut nowhere have no bits.
std::vector<size_t> column_cuts(const BooleanizerSpec& spec, size_t /*planes*/) {
  std::vector<size_t> sizes;
  for (const std::vector<float>& cuts : spec.cuts) {
    if (!cuts.empty()) sizes.push_back(cuts.size());
  }
  return sizes;
}

int read_integer(const Config& config, const char* key, int fallback, int least, int most) {
  return static_cast<int>(config.integer(key, fallback, least, most));
}

void read_threshold(const Config& config, BooleanizerSpec& spec) {
  spec.level = read_integer(config, "level", spec.level, 0, kMostLevel);
}

void read_adaptive(const Config& config, BooleanizerSpec& spec) {
  spec.window = read_integer(config, "window", spec.window, 3, kMostWindow);
  spec.offset = read_integer(config, "offset", spec.offset, -kMostOffset, kMostOffset);
  if (spec.window % 2 == 0) {
    throw input_error("{}: found {}, expected an odd number", config.where("window"), spec.window);
  }
}

void read_thermometer(const Config& config, BooleanizerSpec& spec) {
  spec.levels = read_integer(config, "levels", spec.levels, 1, kMostLevels);
}

void read_quantile(const Config& config, BooleanizerSpec& spec) {
  spec.bins = read_integer(config, "bins", spec.bins, 2, kMostBins);
}

struct Kind {
  const char* name;
  bool for_tables;
  void (*read)(const Config&, BooleanizerSpec&);
  size_t (*planes)(const BooleanizerSpec&, const Dataset&);  // checks the spec first
  std::vector<size_t> (*thermometers)(const BooleanizerSpec&, size_t planes);
  void (*fill)(const BooleanizerSpec&, const Dataset&, BitImages&);
};

constexpr std::array<Kind, 4> kKinds = {{
    {"threshold", false, read_threshold, threshold_planes, single_bits, fill_threshold},
    {"adaptive-gaussian", false, read_adaptive, adaptive_planes, single_bits, fill_adaptive_gaussian},
    {"colour-thermometer", false, read_thermometer, thermometer_planes, colour_levels, fill_thermometer},
    {"quantile", true, read_quantile, quantile_planes, column_cuts, fill_quantile},
}};

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

const Kind& find_kind(const std::string& name) {
  for (const Kind& kind : kKinds) {
    if (name == kind.name) return kind;
  }
  throw input_error("booleanize.kind = \"{}\" is unknown{}", name, suggestion(name, kind_names()));
}

}  // namespace

BooleanizerSpec read_booleanizer(const Config& config, const std::string& default_kind) {
  BooleanizerSpec spec;
  spec.kind = config.choice("kind", default_kind, kind_names());
  find_kind(spec.kind).read(config, spec);
  return spec;
}

// Half of OpenCV's Gaussian kernel for `window` and no given sigma, the middle first: up to 9 from its
// table of dyadic weights, above that exp(-x^2 / 2 sigma^2) over the sum, with sigma as its documentation
// of getGaussianKernel says. Weights have single precision, as OpenCV's have.
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

size_t plane_count(const BooleanizerSpec& spec, const Dataset& dataset) {
  const Kind& kind = find_kind(spec.kind);
  if (kind.for_tables != dataset.is_table()) {
    throw input_error("booleanize.kind = \"{}\": it is for {}, {} is {}", spec.kind,
                      kind.for_tables ? "tables" : "images", dataset.name,
                      dataset.is_table() ? "a table" : "a set of images");
  }
  return kind.planes(spec, dataset);
}

std::vector<size_t> thermometer_sizes(const BooleanizerSpec& spec, size_t planes) {
  return find_kind(spec.kind).thermometers(spec, planes);
}

BitImages booleanize(const BooleanizerSpec& spec, const Dataset& dataset) {
  const size_t planes = plane_count(spec, dataset);
  const size_t height = dataset.is_table() ? 1 : dataset.height;
  const size_t width = dataset.is_table() ? 1 : dataset.width;
  BitImages result(dataset.size(), height, width, planes);
  find_kind(spec.kind).fill(spec, dataset, result);
  return result;
}

}  // namespace bitfed
