#include <zlib.h>

#include <string_view>

#include "bitfed/base/error.h"
#include "bitfed/data/formats/image.h"

namespace bitfed {
namespace {

void append_u32(uint32_t value, std::vector<uint8_t>* bytes) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes->push_back(static_cast<uint8_t>(value >> shift));
}

// Length, type, content, and the CRC-32 of type and content.
void append_chunk(std::string_view type, const std::vector<uint8_t>& content, std::vector<uint8_t>* bytes) {
  append_u32(static_cast<uint32_t>(content.size()), bytes);
  const size_t begin = bytes->size();
  bytes->insert(bytes->end(), type.begin(), type.end());
  bytes->insert(bytes->end(), content.begin(), content.end());
  append_u32(static_cast<uint32_t>(crc32_z(0, bytes->data() + begin, bytes->size() - begin)), bytes);
}

}  // namespace

std::vector<uint8_t> encode_png(const Image& image) {
  std::vector<uint8_t> header;
  append_u32(static_cast<uint32_t>(image.width), &header);
  append_u32(static_cast<uint32_t>(image.height), &header);
  const uint8_t colour_type = image.channels == 3 ? 2 : 0;
  header.insert(header.end(), {8, colour_type, 0, 0, 0});  // 8 bits; deflate, filters, not interlaced
  std::vector<uint8_t> rows;
  const size_t row = image.width * image.channels;
  for (size_t y = 0; y < image.height; ++y) {
    rows.push_back(0);  // no filter
    rows.insert(rows.end(), image.pixels.begin() + static_cast<std::ptrdiff_t>(y * row),
                image.pixels.begin() + static_cast<std::ptrdiff_t>((y + 1) * row));
  }
  uLongf size = compressBound(static_cast<uLong>(rows.size()));
  std::vector<uint8_t> packed(size);
  if (compress(packed.data(), &size, rows.data(), static_cast<uLong>(rows.size())) != Z_OK)
    throw failure("zlib could not compress a picture");
  packed.resize(size);
  std::vector<uint8_t> bytes = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  append_chunk("IHDR", header, &bytes);
  append_chunk("IDAT", packed, &bytes);
  append_chunk("IEND", {}, &bytes);
  return bytes;
}

}  // namespace bitfed
