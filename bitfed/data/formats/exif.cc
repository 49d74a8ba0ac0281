#include "bitfed/data/formats/exif.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace bitfed {
namespace {

constexpr std::string_view kExif{"Exif\0\0", 6};
constexpr size_t kEntryBytes = 12;
constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kShort = 3;  // the type of the tag's value

// Numbers of a TIFF directory, in the order of bytes that its first byte tells. 0 beyond the end.
struct Tiff {
  std::span<const uint8_t> bytes;

  uint32_t number(size_t at, size_t size) const {
    if (at > bytes.size() || size > bytes.size() - at) return 0;
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i) value = value << 8 | bytes[at + (bytes[0] == 'I' ? size - 1 - i : i)];
    return value;
  }
};

}  // namespace

int exif_orientation(std::span<const uint8_t> marker) {
  const auto same = [](uint8_t byte, char letter) { return byte == static_cast<uint8_t>(letter); };
  if (marker.size() < kExif.size() || !std::equal(kExif.begin(), kExif.end(), marker.begin(),
                                                  [&](char a, uint8_t b) { return same(b, a); })) {
    return 1;
  }
  const Tiff tiff{marker.subspan(kExif.size())};
  if (tiff.number(2, 2) != 42) return 1;
  const size_t directory = tiff.number(4, 4);
  const size_t entries = tiff.number(directory, 2);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * kEntryBytes;
    if (tiff.number(entry, 2) != kOrientationTag || tiff.number(entry + 2, 2) != kShort) continue;
    const uint32_t value = tiff.number(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

Image turned_upright(Image image, int orientation) {
  if (orientation == 1) return image;
  const bool is_lying = orientation >= 5;  // rows are to be seen as columns
  const bool flips_rows = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool flips_columns = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  Image result{image.height, image.width, image.channels, {}};
  if (is_lying) std::swap(result.height, result.width);
  result.pixels.reserve(image.pixels.size());
  for (size_t y = 0; y < result.height; ++y) {
    for (size_t x = 0; x < result.width; ++x) {
      size_t row = is_lying ? x : y;
      size_t column = is_lying ? y : x;
      if (flips_rows) row = image.height - 1 - row;
      if (flips_columns) column = image.width - 1 - column;
      const auto pixel =
          image.pixels.begin() + static_cast<std::ptrdiff_t>((row * image.width + column) * image.channels);
      result.pixels.insert(result.pixels.end(), pixel, pixel + static_cast<std::ptrdiff_t>(image.channels));
    }
  }
  return result;
}

}  // namespace bitfed
