#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bitfed {

// An image in memory: row, column, channel.
struct Image {
  size_t height = 0;
  size_t width = 0;
  size_t channels = 0;  // 1: grey, 3: red, green, blue
  std::vector<uint8_t> pixels;
};

inline constexpr size_t kMaximumImageSide = 16384;
inline constexpr uint64_t kMaximumImagePixels = uint64_t{1} << 26;

// Decodes a PNG or JPEG file, told apart by their first bytes. PNG: palettes become colours, 16 bits become
// 8, and what is transparent lies on black. JPEG: grey or colour; CMYK is an input_error. Damaged and
// truncated files are input_errors with `name`, also where a viewer would show a part of them. A build
// without libpng or libjpeg says so.
Image decode_image(std::span<const uint8_t> bytes, const std::string& name);

Image decode_png(std::span<const uint8_t> bytes, const std::string& name);
Image decode_jpeg(std::span<const uint8_t> bytes, const std::string& name);

// Grey as three equal channels, or colour as grey by the weights of ITU-R BT.601.
Image with_channels(Image image, size_t channels);

// Every new pixel is the mean of what it covers of the old image, rounded; larger images repeat pixels.
Image resized(const Image& image, size_t height, size_t width);

// An input_error where the sides are beyond the limits above, or no file could hold so many pixels.
void check_image_size(uint64_t width, uint64_t height, uint64_t pixels_at_most, const std::string& name);

// The bytes of a PNG file (zlib's default level).
std::vector<uint8_t> encode_png(const Image& image);

}  // namespace bitfed
