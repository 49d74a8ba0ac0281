#include "bitfed/data/formats/svhn.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/data/formats/mat.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSide = 32;
constexpr size_t kChannels = 3;
constexpr size_t kPlane = kSide * kSide;
constexpr size_t kImageBytes = kPlane * kChannels;
constexpr uint8_t kLabelOfZero = 10;

MatArray& find(std::vector<MatArray>& arrays, std::string_view variable, std::string_view name) {
  for (MatArray& array : arrays) {
    if (array.name == variable) return array;
  }
  throw input_error("{}: variable {} is missing, expected X and y", name, variable);
}

// The number of images; MATLAB omits a last dimension of one.
size_t image_count(const MatArray& images, std::string_view name) {
  const std::vector<uint64_t>& sides = images.dimensions;
  const bool fits = (sides.size() == 3 || sides.size() == 4) && sides[0] == kSide && sides[1] == kSide &&
                    sides[2] == kChannels;
  if (!fits || images.values.empty()) {
    throw input_error("{}: variable X has {} dimensions and {} values, expected 32 x 32 x 3 x images", name,
                      sides.size(), images.values.size());
  }
  return images.values.size() / kImageBytes;
}

// From MATLAB's column-major channel planes to interleaved rows, in place: all images together are large.
void transpose(uint8_t* pixels) {
  std::array<uint8_t, kImageBytes> stored{};
  std::copy_n(pixels, kImageBytes, stored.data());
  for (size_t channel = 0; channel < kChannels; ++channel) {
    for (size_t x = 0; x < kSide; ++x) {
      for (size_t y = 0; y < kSide; ++y) {
        pixels[(y * kSide + x) * kChannels + channel] = stored[channel * kPlane + x * kSide + y];
      }
    }
  }
}

std::vector<uint16_t> digits(const MatArray& labels, size_t count, std::string_view name) {
  if (labels.values.size() != count) {
    throw input_error("{}: variable y has {} labels, but X has {} images", name, labels.values.size(), count);
  }
  std::vector<uint16_t> result;
  result.reserve(count);
  for (const uint8_t label : labels.values) {
    if (label < 1 || label > kLabelOfZero) {
      throw input_error("{}: variable y: label {} of image {}, expected 1 to 10", name, label, result.size());
    }
    result.push_back(label % kLabelOfZero);
  }
  return result;
}

}  // namespace

Dataset parse_svhn(std::span<const uint8_t> bytes, std::string_view name) {
  static const std::array<std::string, 2> kVariables = {"X", "y"};
  std::vector<MatArray> arrays = parse_mat(bytes, name, kVariables);
  MatArray& images = find(arrays, "X", name);
  const size_t count = image_count(images, name);
  Dataset dataset;
  dataset.name = "svhn";
  dataset.height = kSide;
  dataset.width = kSide;
  dataset.channels = kChannels;
  dataset.labels = digits(find(arrays, "y", name), count, name);
  dataset.class_names = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  images.values.resize(count * kImageBytes);
  for (size_t i = 0; i < count; ++i) transpose(images.values.data() + i * kImageBytes);
  dataset.pixels = std::move(images.values);
  return dataset;
}

DataSplit load_svhn(const fs::path& folder) {
  // One after the other: in one expression both files would be in memory to its end.
  const auto load = [&](const char* file) {
    const fs::path path = folder / file;
    return parse_svhn(read_file(path), path.string());
  };
  DataSplit split;
  split.train = load("train_32x32.mat");
  split.test = load("test_32x32.mat");
  return split;
}

}  // namespace bitfed
