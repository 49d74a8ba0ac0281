#include "bitfed/data/formats/arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "bitfed/base/error.h"
#include "bitfed/base/names.h"

namespace bitfed {
namespace {

constexpr size_t kMaximumSide = 4096;

std::string shape_text(const std::vector<uint64_t>& shape) {
  std::string text;
  for (const uint64_t side : shape) text += (text.empty() ? "" : " x ") + std::to_string(side);
  return text.empty() ? "one value" : text;
}

bool is_channels(uint64_t side) {
  return side == 1 || side == 3;
}

struct ImageShape {
  size_t height = 0;
  size_t width = 0;
  size_t channels = 1;
  bool channels_first = false;
};

ImageShape image_shape(const NpyArray& x, const std::vector<size_t>& image, const std::string& name) {
  const std::vector<uint64_t>& s = x.shape;
  const size_t pixels = x.shape[0] == 0 ? 0 : x.count() / x.shape[0];
  if (!image.empty()) {
    if (image[0] * image[1] * image[2] != pixels) {
      throw input_error("{}: x: found {} values per sample, expected {} x {} x {} (data.image)", name, pixels,
                        image[0], image[1], image[2]);
    }
    if (s.size() == 2) return {image[0], image[1], image[2], false};
  }
  if (s.size() == 3) return {s[1], s[2], 1, false};
  if (is_channels(s[3])) return {s[1], s[2], s[3], false};
  if (is_channels(s[1])) return {s[2], s[3], s[1], true};
  throw input_error("{}: x: found {}, expected images of 1 or 3 channels, first or last", name,
                    shape_text(s));
}

std::vector<float> floats_of(const NpyArray& array, const std::string& name) {
  std::vector<float> values(array.count());
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = array.number(i);
    // Written so that NaN fails, too.
    if (!(std::fabs(value) <= std::numeric_limits<float>::max()))
      throw input_error("{}: x: value {} is {}, expected a finite number", name, i, value);
    values[i] = static_cast<float>(value);
  }
  return values;
}

std::vector<uint8_t> bytes_of(const NpyArray& x, const std::string& name) {
  if (x.kind == 'u' && x.item_bytes == 1) return x.values;
  if (x.kind == 'f') return pixels_of(floats_of(x, name), name + ": x");
  std::vector<uint8_t> pixels(x.count());
  for (size_t i = 0; i < pixels.size(); ++i) {
    const double value = x.kind == 'b' ? 255 * x.number(i) : x.number(i);
    if (value < 0 || value > 255)
      throw input_error("{}: x: value {} is {}, expected a pixel from 0 to 255", name, i, value);
    pixels[i] = static_cast<uint8_t>(value);
  }
  return pixels;
}

// From sample, channel, row, column to sample, row, column, channel.
std::vector<uint8_t> channels_last(std::span<const uint8_t> planes, const ImageShape& shape) {
  std::vector<uint8_t> pixels(planes.size());
  const size_t plane = shape.height * shape.width;
  const size_t image = plane * shape.channels;
  for (size_t i = 0; i < planes.size(); ++i) {
    const size_t within = i % image;
    pixels[i - within + within % plane * shape.channels + within / plane] = planes[i];
  }
  return pixels;
}

void read_columns(const NpyArray* names, size_t count, const std::string& name, Dataset* data) {
  if (names != nullptr && (names->count() != count || !names->is_text())) {
    throw input_error("{}: columns: found {} values, expected {} names", name, names->count(), count);
  }
  for (size_t i = 0; i < count; ++i)
    data->columns.push_back(names != nullptr ? names->text(i) : fmt::format("column {}", i + 1));
}

std::vector<std::string> texts_of(const NpyArray& array, size_t samples, const char* what,
                                  const std::string& name) {
  const bool is_flat = array.shape.size() == 1 || (array.shape.size() == 2 && array.shape[1] == 1);
  if (!is_flat || array.shape[0] != samples) {
    throw input_error("{}: {}: found {}, expected one value for each of {} samples", name, what,
                      shape_text(array.shape), samples);
  }
  std::vector<std::string> texts(samples);
  for (size_t i = 0; i < samples; ++i) {
    if (!array.is_text() && !std::isfinite(array.number(i))) {
      throw input_error("{}: {}: value {} is {}, expected a number or a string", name, what, i,
                        array.number(i));
    }
    texts[i] = array.text(i);
  }
  return texts;
}

const NpyArray* find(const std::vector<NamedArray>& arrays, std::string_view name) {
  for (const NamedArray& array : arrays) {
    if (array.name == name) return &array.array;
  }
  return nullptr;
}

}  // namespace

void check_image_shape(const std::vector<size_t>& image, const std::string& name) {
  const bool fits = image.size() == 3 && image[0] >= 1 && image[0] <= kMaximumSide && image[1] >= 1 &&
                    image[1] <= kMaximumSide && is_channels(image[2]);
  if (!fits)
    throw input_error("{}: expected [height, width, channels]: sides from 1 to {} and 1 or 3 channels", name,
                      kMaximumSide);
}

std::vector<uint8_t> pixels_of(std::span<const float> values, const std::string& name) {
  std::vector<uint8_t> pixels(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (!(values[i] >= 0 && values[i] <= 1)) {
      throw input_error("{}: value {} is {:g}, expected bytes, or floats from 0 to 1 as pixels", name, i,
                        values[i]);
    }
    pixels[i] = static_cast<uint8_t>(std::lround(255 * static_cast<double>(values[i])));
  }
  return pixels;
}

NamedSamples samples_of_arrays(const ArraySet& arrays, const std::vector<size_t>& image,
                               const std::string& name) {
  const NpyArray& x = *arrays.x;
  if (x.is_text()) throw input_error("{}: x: found strings, expected numbers", name);
  if (x.shape.size() < 2 || x.shape.size() > 4 || x.count() == 0) {
    throw input_error(
        "{}: x: found {}, expected samples x columns, samples x height x width or samples x "
        "height x width x channels",
        name, shape_text(x.shape));
  }
  NamedSamples samples;
  samples.data.name = name;
  const auto count = static_cast<size_t>(x.shape[0]);
  if (x.shape.size() == 2 && image.empty()) {
    read_columns(arrays.columns, static_cast<size_t>(x.shape[1]), name, &samples.data);
    samples.data.values = floats_of(x, name);
  } else {
    const ImageShape shape = image_shape(x, image, name);
    check_image_shape({shape.height, shape.width, shape.channels}, name + ": x");
    samples.data.height = shape.height;
    samples.data.width = shape.width;
    samples.data.channels = shape.channels;
    samples.data.pixels = bytes_of(x, name);
    if (shape.channels_first) samples.data.pixels = channels_last(samples.data.pixels, shape);
  }
  samples.classes = texts_of(*arrays.y, count, "y", name);
  if (arrays.person != nullptr) samples.people = texts_of(*arrays.person, count, "person", name);
  return samples;
}

NpzParts load_npz(const std::filesystem::path& path, const std::vector<size_t>& image) {
  const std::string name = path.string();
  const std::vector<NamedArray> arrays = parse_npz(read_file(path), name);
  const auto part = [&](const std::string& suffix) {
    const ArraySet set{find(arrays, "x" + suffix), find(arrays, "y" + suffix),
                       find(arrays, "person" + suffix), find(arrays, "columns")};
    if (set.x == nullptr || set.y == nullptr) {
      std::vector<std::string> found;
      for (const NamedArray& array : arrays) found.push_back(array.name);
      throw input_error("{}: found {}, expected x and y, or x_train, y_train, x_test and y_test", name,
                        found.empty() ? "no arrays" : joined(found));
    }
    return samples_of_arrays(set, image, name);
  };
  NpzParts parts;
  const bool has_test = find(arrays, "x_train") != nullptr || find(arrays, "x_test") != nullptr;
  parts.train = part(has_test ? "_train" : "");
  if (has_test) parts.test = part("_test");
  if (const NpyArray* names = find(arrays, "class_names"))
    parts.train.class_names =
        texts_of(*names, names->shape.empty() ? 0 : names->shape[0], "class_names", name);
  return parts;
}

}  // namespace bitfed
