#include "bitfed/data/booleanize/booleanizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "bitfed/base/error.h"
#include "bitfed/base/hash/random.h"

namespace bitfed {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Shape {
  size_t count;
  size_t height;
  size_t width;
  size_t channels;
};

Dataset images(const Shape& shape, std::vector<uint8_t> pixels) {
  Dataset data;
  data.name = "images";
  data.height = shape.height;
  data.width = shape.width;
  data.channels = shape.channels;
  data.pixels = std::move(pixels);
  data.labels.resize(shape.count);
  data.class_names = {"any"};
  EXPECT_EQ(data.pixels.size(), shape.count * data.image_bytes());
  return data;
}

// Half of the images are noise, half are nearly flat, where bits depend on the rounding of the mean.
Dataset random_images(const Shape& shape, uint64_t seed) {
  RandomStream stream(StreamKey{seed, "test"});
  const size_t image_bytes = shape.height * shape.width * shape.channels;
  std::vector<uint8_t> pixels;
  for (size_t i = 0; i < shape.count * image_bytes; ++i) {
    const bool noise = i / image_bytes % 2 == 0;
    pixels.push_back(static_cast<uint8_t>(noise ? stream.below(256) : 100 + stream.below(8)));
  }
  return images(shape, std::move(pixels));
}

Dataset table(size_t columns, std::vector<float> values) {
  Dataset data;
  data.name = "readings";
  for (size_t i = 0; i < columns; ++i) data.columns.push_back("c" + std::to_string(i));
  data.labels.resize(values.size() / columns);
  data.values = std::move(values);
  data.class_names = {"any"};
  return data;
}

BooleanizerSpec spec_of(const std::string& kind) {
  BooleanizerSpec spec;
  spec.kind = kind;
  return spec;
}

std::vector<int> bits_of_row(const BitImages& result, size_t row) {
  std::vector<int> bits;
  for (size_t column = 0; column < result.bits.columns(); ++column)
    bits.push_back(result.bits.get(row, column));
  return bits;
}

void expect_zero_padding(const BitImages& result) {
  for (size_t row = 0; row < result.bits.rows(); ++row) {
    for (size_t bit = result.bits.columns(); bit < result.bits.stride() * kWordBits; ++bit) {
      EXPECT_FALSE(get_bit(result.bits.row(row), bit));
    }
  }
}

std::string error_of(const BooleanizerSpec& spec, const Dataset& data) {
  try {
    booleanize(spec, data);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kInput);
    const std::string text = error.what();
    EXPECT_EQ(text.find('\n'), std::string::npos);
    return text;
  }
  return "no error";
}

TEST(Threshold, IsStrict) {
  const BitImages result = booleanize(spec_of("threshold"), images({1, 2, 3, 1}, {0, 75, 76, 255, 74, 100}));
  EXPECT_EQ(result.count, 1u);
  EXPECT_EQ(result.height, 2u);
  EXPECT_EQ(result.width, 3u);
  EXPECT_EQ(result.planes, 1u);
  EXPECT_THAT(bits_of_row(result, 0), ElementsAre(0, 0, 1));
  EXPECT_THAT(bits_of_row(result, 1), ElementsAre(1, 0, 1));
}

TEST(Threshold, KeepsColourPlanesSideBySide) {
  BooleanizerSpec spec = spec_of("threshold");
  spec.level = 9;
  const BitImages result = booleanize(spec, images({1, 1, 2, 3}, {10, 9, 10, 9, 10, 10}));
  EXPECT_EQ(result.planes, 3u);
  EXPECT_THAT(bits_of_row(result, 0), ElementsAre(1, 0, 1, 0, 1, 1));  // bit x * 3 + channel
}

TEST(Threshold, PacksRowsOfAnyLength) {
  for (const size_t width : {1, 31, 33, 63, 64, 65, 127, 128, 129}) {
    const Dataset data = random_images({3, 2, width, 1}, width);
    const BitImages result = booleanize(spec_of("threshold"), data);
    for (size_t i = 0; i < data.pixels.size(); ++i) {
      EXPECT_EQ(result.bits.get(i / width, i % width), data.pixels[i] > 75);
    }
    expect_zero_padding(result);
  }
}

// As the definition reads: a two-dimensional sum over the window in double precision, with OpenCV's sigma.
double plain_mean(const Dataset& data, size_t sample, const std::vector<double>& kernel, size_t at) {
  const auto image = data.image(sample);
  const auto radius = static_cast<int64_t>(kernel.size() / 2);
  const auto height = static_cast<int64_t>(data.height);
  const auto width = static_cast<int64_t>(data.width);
  const auto y = static_cast<int64_t>(at / data.channels / data.width);
  const auto x = static_cast<int64_t>(at / data.channels % data.width);
  double sum = 0;
  for (int64_t dy = -radius; dy <= radius; ++dy) {
    for (int64_t dx = -radius; dx <= radius; ++dx) {
      const auto row = static_cast<size_t>(std::clamp<int64_t>(y + dy, 0, height - 1));
      const auto column = static_cast<size_t>(std::clamp<int64_t>(x + dx, 0, width - 1));
      const double weight =
          kernel[static_cast<size_t>(dy + radius)] * kernel[static_cast<size_t>(dx + radius)];
      sum += weight * image[(row * data.width + column) * data.channels + at % data.channels];
    }
  }
  return sum;
}

std::vector<double> gaussian(int window) {
  const double sigma = 0.3 * ((window - 1) * 0.5 - 1) + 0.8;
  std::vector<double> kernel;
  double sum = 0;
  for (int i = 0; i < window; ++i) {
    const double x = i - (window - 1) / 2.0;
    kernel.push_back(std::exp(-x * x / (2 * sigma * sigma)));
    sum += kernel.back();
  }
  for (double& weight : kernel) weight /= sum;
  return kernel;
}

// Bits must agree wherever the mean is not so close to a half that single-precision weights decide.
void expect_like_plain(const BooleanizerSpec& spec, const Dataset& data, const std::vector<double>& kernel) {
  const BitImages result = booleanize(spec, data);
  size_t undecided = 0;
  for (size_t sample = 0; sample < data.size(); ++sample) {
    for (size_t at = 0; at < data.image_bytes(); ++at) {
      const double mean = plain_mean(data, sample, kernel, at);
      if (std::abs(mean - std::floor(mean) - 0.5) < 1e-4) {
        ++undecided;
        continue;
      }
      const bool expected = data.image(sample)[at] - std::round(mean) > -spec.offset;
      const size_t row_bits = data.width * data.channels;
      EXPECT_EQ(result.bits.get(sample * data.height + at / row_bits, at % row_bits), expected)
          << "sample " << sample << " byte " << at << " mean " << mean;
    }
  }
  EXPECT_LE(undecided, data.pixels.size() / 100);
  expect_zero_padding(result);
}

TEST(AdaptiveGaussian, AgreesWithThePlainSum) {
  for (const Shape& shape : {Shape{20, 1, 1, 1}, Shape{8, 3, 40, 1}, Shape{8, 40, 3, 1}, Shape{6, 28, 28, 1},
                             Shape{4, 13, 33, 3}, Shape{4, 5, 1, 2}, Shape{2, 2, 130, 1}}) {
    for (const int window : {11, 13, 21}) {
      BooleanizerSpec spec = spec_of("adaptive-gaussian");
      spec.window = window;
      spec.offset = window == 13 ? -1 : 2;
      expect_like_plain(spec, random_images(shape, shape.width), gaussian(window));
    }
  }
}

// Windows up to 9 have OpenCV's dyadic weights: means on a half are common, and go to the even neighbour.
TEST(AdaptiveGaussian, RoundsHalvesToEven) {
  BooleanizerSpec spec = spec_of("adaptive-gaussian");
  spec.window = 3;  // weights 1/4 1/2 1/4; along a single row the vertical mean changes nothing
  spec.offset = 0;
  // Means of the middle: (2 + 2 * 3 + 2) / 4 = 2.5 -> 2 and 3 > 2; (3 + 2 * 4 + 3) / 4 = 3.5 -> 4, not 4 > 4.
  EXPECT_EQ(booleanize(spec, images({1, 1, 3, 1}, {2, 3, 2})).bits.get(0, 1), 1);
  EXPECT_EQ(booleanize(spec, images({1, 1, 3, 1}, {3, 4, 3})).bits.get(0, 1), 0);
}

TEST(AdaptiveGaussian, AgreesWithThePlainSumForSmallWindows) {
  const std::vector<std::vector<double>> kernels = {
      {64, 128, 64}, {16, 64, 96, 64, 16}, {8, 28, 56, 72, 56, 28, 8}, {4, 13, 30, 51, 60, 51, 30, 13, 4}};
  for (std::vector<double> kernel : kernels) {
    for (double& weight : kernel) weight /= 256;
    BooleanizerSpec spec = spec_of("adaptive-gaussian");
    spec.window = static_cast<int>(kernel.size());
    const Dataset data = random_images({4, 9, 20, 1}, kernel.size());
    const BitImages result = booleanize(spec, data);
    for (size_t i = 0; i < data.pixels.size(); ++i) {
      const double mean =
          std::nearbyint(plain_mean(data, i / 180, kernel, i % 180));  // exact, halves to even
      EXPECT_EQ(result.bits.get(i / 20, i % 20), data.pixels[i] - mean > -2) << "window " << kernel.size();
    }
  }
}

TEST(AdaptiveGaussian, AFlatImageIsItsOwnMean) {
  for (const int value : {0, 1, 127, 254, 255}) {
    const Dataset data = images({1, 4, 4, 1}, std::vector<uint8_t>(16, static_cast<uint8_t>(value)));
    BooleanizerSpec spec = spec_of("adaptive-gaussian");
    for (const int offset : {-1, 0, 1}) {  // 0 > -offset
      spec.offset = offset;
      EXPECT_THAT(bits_of_row(booleanize(spec, data), 3), Each(offset > 0));
    }
  }
}

TEST(AdaptiveGaussian, ChannelsDoNotMix) {
  const Dataset colour = random_images({3, 12, 17, 3}, 4);
  const BitImages together = booleanize(spec_of("adaptive-gaussian"), colour);
  for (size_t channel = 0; channel < 3; ++channel) {
    std::vector<uint8_t> pixels;
    for (size_t i = channel; i < colour.pixels.size(); i += 3) pixels.push_back(colour.pixels[i]);
    const BitImages alone =
        booleanize(spec_of("adaptive-gaussian"), images({3, 12, 17, 1}, std::move(pixels)));
    for (size_t row = 0; row < 36; ++row) {
      for (size_t x = 0; x < 17; ++x)
        EXPECT_EQ(together.bits.get(row, x * 3 + channel), alone.bits.get(row, x));
    }
  }
}

TEST(ColourThermometer, EightLevels) {
  // Levels at 255 / 9 * (1 … 8) = 28.33, 56.67, 85, 113.33, 141.67, 170, 198.33, 226.67.
  const BitImages result =
      booleanize(spec_of("colour-thermometer"), images({1, 1, 2, 3}, {28, 29, 84, 85, 226, 227}));
  EXPECT_EQ(result.planes, 24u);
  const std::vector<int> bits = bits_of_row(result, 0);
  std::vector<int> reached;  // of each byte; a level is reached only with those below it
  for (size_t i = 0; i < 6; ++i) {
    reached.push_back(static_cast<int>(std::count(bits.begin() + i * 8, bits.begin() + i * 8 + 8, 1)));
    EXPECT_TRUE(std::is_sorted(bits.begin() + i * 8, bits.begin() + i * 8 + 8, std::greater<>()));
  }
  EXPECT_THAT(reached, ElementsAre(0, 1, 2, 3, 7, 8));
}

TEST(ColourThermometer, AnyNumberOfLevels) {
  for (const int levels : {1, 2, 7, 8, 63, 64}) {
    BooleanizerSpec spec = spec_of("colour-thermometer");
    spec.levels = levels;
    const auto per_byte = static_cast<size_t>(levels);
    const Dataset data = random_images({2, 3, 11, 3}, per_byte);
    const BitImages result = booleanize(spec, data);
    for (size_t i = 0; i < data.pixels.size(); ++i) {
      for (int z = 0; z < levels; ++z) {
        const bool expected = data.pixels[i] * (levels + 1) >= (z + 1) * 255;
        EXPECT_EQ(result.bits.get(i / 33, i % 33 * per_byte + static_cast<size_t>(z)), expected);
      }
    }
    expect_zero_padding(result);
  }
}

TEST(Quantile, OnePlaneForEachCut) {
  BooleanizerSpec spec = spec_of("quantile");
  spec.cuts = {{1, 2}, {}, {-0.5f}};
  const BitImages result = booleanize(spec, table(3, {1.5f, 9, -0.5f, 3, 9, 0, kNan, 9, 1}));
  EXPECT_EQ(result.count, 3u);
  EXPECT_EQ(result.height, 1u);
  EXPECT_EQ(result.width, 1u);
  EXPECT_EQ(result.planes, 3u);
  EXPECT_THAT(bits_of_row(result, 0), ElementsAre(1, 0, 0));
  EXPECT_THAT(bits_of_row(result, 1), ElementsAre(1, 1, 1));
  EXPECT_THAT(bits_of_row(result, 2), ElementsAre(0, 0, 1)) << "a missing value is above no cut";
  expect_zero_padding(result);
}

TEST(Booleanize, AnEmptySetGivesNoImages) {
  for (const std::string kind : {"threshold", "adaptive-gaussian", "colour-thermometer"}) {
    EXPECT_EQ(booleanize(spec_of(kind), images({0, 4, 4, 1}, {})).count, 0u);
  }
}

TEST(Booleanize, RefusesWhatDoesNotGoTogether) {
  const Dataset image = images({1, 1, 1, 1}, {0});
  const Dataset readings = table(2, {0, 1, 2, 3});
  EXPECT_THAT(error_of(spec_of("threshold"), readings), HasSubstr("it is for images, readings is a table"));
  EXPECT_THAT(error_of(spec_of("quantile"), image), HasSubstr("it is for tables, images is a set of images"));
  EXPECT_THAT(error_of(spec_of("treshold"), image),
              HasSubstr("\"treshold\" is unknown (did you mean 'threshold'?)"));
  BooleanizerSpec spec = spec_of("quantile");
  EXPECT_THAT(error_of(spec, readings), HasSubstr("booleanize.cuts: none, expected cuts fitted to readings"));
  spec.cuts = {{1}};
  EXPECT_THAT(error_of(spec, readings), HasSubstr("found cuts for 1 columns, readings has 2"));
  spec.cuts = {{}, {}};
  EXPECT_THAT(error_of(spec, readings), HasSubstr("none for any column"));
  spec.cuts = {{}, {2, 2}};
  EXPECT_THAT(error_of(spec, readings), HasSubstr("column 'c1': cut 1 is 2, expected ascending"));
  spec.cuts = {{kNan}, {}};
  EXPECT_THAT(error_of(spec, readings), HasSubstr("column 'c0': cut 0 is nan"));
}

// A spec may come from a model file, past the checks of a recipe.
TEST(Booleanize, RefusesValuesOutOfRange) {
  const Dataset image = images({1, 1, 1, 1}, {0});
  const auto with = [](const std::string& kind, int BooleanizerSpec::*field, int value) {
    BooleanizerSpec spec = spec_of(kind);
    spec.*field = value;
    return spec;
  };
  EXPECT_THAT(error_of(with("threshold", &BooleanizerSpec::level, 256), image), HasSubstr("level = 256"));
  EXPECT_THAT(error_of(with("threshold", &BooleanizerSpec::level, -1), image),
              HasSubstr("expected 0 to 255"));
  EXPECT_THAT(error_of(with("adaptive-gaussian", &BooleanizerSpec::window, 10), image), HasSubstr("odd"));
  EXPECT_THAT(error_of(with("adaptive-gaussian", &BooleanizerSpec::window, 1), image),
              HasSubstr("window = 1"));
  EXPECT_THAT(error_of(with("adaptive-gaussian", &BooleanizerSpec::offset, 256), image), HasSubstr("offset"));
  EXPECT_THAT(error_of(with("colour-thermometer", &BooleanizerSpec::levels, 0), image),
              HasSubstr("levels = 0"));
  EXPECT_THAT(error_of(with("colour-thermometer", &BooleanizerSpec::levels, 65), image),
              HasSubstr("levels = 65"));
}

BooleanizerSpec read(const std::string& value, const std::string& default_kind = "threshold") {
  const Config config = Config::parse("booleanize = " + value, "recipe.toml");
  const BooleanizerSpec spec = read_booleanizer(config.section("booleanize"), default_kind);
  config.reject_unknown_keys();
  return spec;
}

std::string read_error(const std::string& value) {
  try {
    read(value);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ReadBooleanizer, ReadsTheKeysOfItsKind) {
  EXPECT_EQ(read("{}"), BooleanizerSpec{});
  EXPECT_EQ(read("{}", "quantile").kind, "quantile");
  EXPECT_EQ(read("{kind = 'threshold', level = 100}").level, 100);
  const BooleanizerSpec adaptive = read("{kind = 'adaptive-gaussian', window = 5, offset = -3}");
  EXPECT_EQ(adaptive.kind, "adaptive-gaussian");
  EXPECT_EQ(adaptive.window, 5);
  EXPECT_EQ(adaptive.offset, -3);
  EXPECT_EQ(read("{kind = 'colour-thermometer', levels = 4}").levels, 4);
  EXPECT_EQ(read("{bins = 5}", "quantile").bins, 5);
}

TEST(ReadBooleanizer, RefusesOtherKeysAndValuesOutOfRange) {
  EXPECT_THAT(read_error("{kind = 'threshold', window = 11}"), HasSubstr("window"));
  EXPECT_THAT(read_error("{kind = 'quantile', level = 11}"), HasSubstr("level"));
  EXPECT_THAT(read_error("{level = 256}"), HasSubstr("booleanize.level"));
  EXPECT_THAT(read_error("{kind = 'adaptive-gaussian', window = 4}"),
              HasSubstr("booleanize.window: found 4"));
  EXPECT_THAT(read_error("{kind = 'colour-thermometer', levels = 0}"), HasSubstr("booleanize.levels"));
  EXPECT_THAT(read_error("{kind = 'quantile', bins = 1}"), HasSubstr("booleanize.bins"));
  EXPECT_THAT(read_error("{kind = 'sobel'}"), HasSubstr("adaptive-gaussian"));
}

}  // namespace
}  // namespace bitfed
