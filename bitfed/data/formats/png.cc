#include "bitfed/base/error.h"
#include "bitfed/data/formats/image.h"

#ifdef BITFED_PNG
#include <png.h>
#endif

namespace bitfed {

#ifdef BITFED_PNG

namespace {

constexpr uint64_t kMaximumPixelsPerByte = 8 * 1032;  // one bit each, packed as well as deflate can

// Frees what libpng keeps of an image, also where an error is thrown.
struct PngReader {
  png_image image{};
  PngReader() { image.version = PNG_IMAGE_VERSION; }
  ~PngReader() { png_image_free(&image); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
};

// On black: every channel times its opacity. `channels` without the opacity, which comes last.
std::vector<uint8_t> on_black(const std::vector<uint8_t>& pixels, size_t channels) {
  std::vector<uint8_t> result;
  result.reserve(pixels.size() / (channels + 1) * channels);
  for (size_t i = 0; i < pixels.size(); i += channels + 1) {
    const unsigned alpha = pixels[i + channels];
    for (size_t c = 0; c < channels; ++c)
      result.push_back(static_cast<uint8_t>((pixels[i + c] * alpha + 127) / 255));
  }
  return result;
}

}  // namespace

Image decode_png(std::span<const uint8_t> bytes, const std::string& name) {
  PngReader reader;
  png_image& image = reader.image;
  if (png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) == 0)
    throw input_error("{}: not a whole PNG image: {}", name, image.message);
  check_image_size(image.width, image.height, kMaximumPixelsPerByte * bytes.size(), name);
  const bool is_colour = (image.format & PNG_FORMAT_FLAG_COLOR) != 0;
  const bool has_alpha = (image.format & PNG_FORMAT_FLAG_ALPHA) != 0;
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // 16 bits are taken as 8 are: not as linear light
  image.format = (is_colour ? PNG_FORMAT_FLAG_COLOR : 0u) | (has_alpha ? PNG_FORMAT_FLAG_ALPHA : 0u);
  Image result{image.height, image.width, is_colour ? size_t{3} : size_t{1}, {}};
  result.pixels.resize(PNG_IMAGE_SIZE(image));
  if (png_image_finish_read(&image, nullptr, result.pixels.data(), 0, nullptr) == 0)
    throw input_error("{}: not a whole PNG image: {}", name, image.message);
  if (has_alpha) result.pixels = on_black(result.pixels, result.channels);
  return result;
}

#else

Image decode_png(std::span<const uint8_t> /*bytes*/, const std::string& name) {
  throw input_error("{}: PNG is not in this build, which found no libpng: install libpng-dev and build again",
                    name);
}

#endif

}  // namespace bitfed
