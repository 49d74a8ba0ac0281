#include "bitfed/data/formats/image.h"

#include <algorithm>
#include <utility>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

bool begins_with(std::span<const uint8_t> bytes, std::initializer_list<uint8_t> magic) {
  return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin());
}

// What [begin, end) of `new_side` equal pieces covers of pixel `index` of `old_side`, in units of
// 1 / (old_side * new_side).
uint64_t overlap(uint64_t index, uint64_t piece, uint64_t old_side, uint64_t new_side) {
  const uint64_t begin = std::max(index * new_side, piece * old_side);
  const uint64_t end = std::min((index + 1) * new_side, (piece + 1) * old_side);
  return end > begin ? end - begin : 0;
}

}  // namespace

Image decode_image(std::span<const uint8_t> bytes, const std::string& name) {
  if (begins_with(bytes, {0x89, 'P', 'N', 'G'})) return decode_png(bytes, name);
  if (begins_with(bytes, {0xff, 0xd8})) return decode_jpeg(bytes, name);
  throw input_error("{}: found neither the first bytes of a PNG nor of a JPEG file", name);
}

void check_image_size(uint64_t width, uint64_t height, uint64_t pixels_at_most, const std::string& name) {
  if (width >= 1 && height >= 1 && width <= kMaximumImageSide && height <= kMaximumImageSide &&
      width * height <= kMaximumImagePixels) {
    if (width * height <= pixels_at_most) return;
    throw input_error("{}: its header says {} x {} pixels, more than a file of its size can hold", name,
                      height, width);
  }
  throw input_error("{}: found an image of {} x {}, expected sides of 1 to {} and at most {} pixels", name,
                    height, width, kMaximumImageSide, kMaximumImagePixels);
}

Image with_channels(Image image, size_t channels) {
  if (image.channels == channels) return image;
  Image result{image.height, image.width, channels, {}};
  const size_t count = image.height * image.width;
  result.pixels.resize(count * channels);
  for (size_t i = 0; i < count; ++i) {
    if (channels == 3) {
      std::fill_n(result.pixels.begin() + static_cast<std::ptrdiff_t>(3 * i), 3, image.pixels[i]);
    } else {
      const uint8_t* p = &image.pixels[3 * i];
      result.pixels[i] = static_cast<uint8_t>((299u * p[0] + 587u * p[1] + 114u * p[2] + 500u) / 1000u);
    }
  }
  return result;
}

Image resized(const Image& image, size_t height, size_t width) {
  if (image.height == height && image.width == width) return image;
  Image result{height, width, image.channels, {}};
  result.pixels.resize(height * width * image.channels);
  const uint64_t area = uint64_t{image.height} * image.width;  // of a new pixel, in units of overlap()^2
  for (size_t y = 0; y < height; ++y) {
    const size_t top = y * image.height / height;
    const size_t bottom = ((y + 1) * image.height + height - 1) / height;
    for (size_t x = 0; x < width; ++x) {
      const size_t left = x * image.width / width;
      const size_t right = ((x + 1) * image.width + width - 1) / width;
      for (size_t c = 0; c < image.channels; ++c) {
        uint64_t sum = 0;
        for (size_t i = top; i < bottom; ++i) {
          for (size_t j = left; j < right; ++j) {
            sum += overlap(i, y, image.height, height) * overlap(j, x, image.width, width) *
                   image.pixels[(i * image.width + j) * image.channels + c];
          }
        }
        result.pixels[(y * width + x) * image.channels + c] = static_cast<uint8_t>((sum + area / 2) / area);
      }
    }
  }
  return result;
}

}  // namespace bitfed
