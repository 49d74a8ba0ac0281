#include "bitfed/base/error.h"
#include "bitfed/data/formats/exif.h"
#include "bitfed/data/formats/image.h"

#ifdef BITFED_JPEG
#include <csetjmp>
#include <cstdio>
#include <utility>

#include <jpeglib.h>
#endif

namespace bitfed {

#ifdef BITFED_JPEG

namespace {

constexpr uint64_t kMaximumPixelsPerByte = 1024;  // a block of 64 takes at least a bit
constexpr int kExifMarker = JPEG_APP0 + 1;

// libjpeg reports errors by a function that must not return: it jumps back to where it was called from. The
// functions that set such a mark have no objects with destructors, which a jump would skip.
struct JpegReader {
  jpeg_decompress_struct decoder{};
  jpeg_error_mgr errors{};
  std::jmp_buf mark{};
  char message[JMSG_LENGTH_MAX] = {};
};

void stop(j_common_ptr decoder) {
  auto* reader = static_cast<JpegReader*>(decoder->client_data);
  decoder->err->format_message(decoder, reader->message);
  std::longjmp(reader->mark, 1);
}

// Warnings tell of damage that libjpeg fills with grey; traces are for debugging.
void warn(j_common_ptr decoder, int level) {
  if (level < 0) stop(decoder);
}

bool read_header(JpegReader* reader, std::span<const uint8_t> bytes) {
  reader->decoder.err = jpeg_std_error(&reader->errors);
  reader->errors.error_exit = stop;
  reader->errors.emit_message = warn;
  reader->decoder.client_data = reader;
  if (setjmp(reader->mark) != 0) return false;
  jpeg_create_decompress(&reader->decoder);
  reader->decoder.client_data = reader;
  jpeg_mem_src(&reader->decoder, bytes.data(), bytes.size());
  jpeg_save_markers(&reader->decoder, kExifMarker, 0xffff);
  jpeg_read_header(&reader->decoder, TRUE);
  return true;
}

bool read_pixels(JpegReader* reader, uint8_t* pixels, size_t row_bytes) {
  if (setjmp(reader->mark) != 0) return false;
  jpeg_start_decompress(&reader->decoder);
  while (reader->decoder.output_scanline < reader->decoder.output_height) {
    JSAMPROW row = pixels + row_bytes * reader->decoder.output_scanline;
    jpeg_read_scanlines(&reader->decoder, &row, 1);
  }
  jpeg_finish_decompress(&reader->decoder);
  return true;
}

// Of the first marker that says it.
int orientation_of(const jpeg_decompress_struct& decoder) {
  int orientation = 1;
  for (auto marker = decoder.marker_list; marker != nullptr && orientation == 1; marker = marker->next) {
    if (marker->marker == kExifMarker) orientation = exif_orientation({marker->data, marker->data_length});
  }
  return orientation;
}

struct Destroy {
  JpegReader* reader;
  ~Destroy() { jpeg_destroy_decompress(&reader->decoder); }
};

}  // namespace

Image decode_jpeg(std::span<const uint8_t> bytes, const std::string& name) {
  JpegReader reader;
  const Destroy destroy{&reader};
  if (!read_header(&reader, bytes)) throw input_error("{}: not a whole JPEG image: {}", name, reader.message);
  jpeg_decompress_struct& decoder = reader.decoder;
  check_image_size(decoder.image_width, decoder.image_height, kMaximumPixelsPerByte * bytes.size(), name);
  const J_COLOR_SPACE space = decoder.jpeg_color_space;
  if (space != JCS_GRAYSCALE && space != JCS_YCbCr && space != JCS_RGB) {
    throw input_error("{}: found a JPEG in {}, expected grey or RGB", name,
                      space == JCS_CMYK || space == JCS_YCCK ? "CMYK" : "an unknown colour space");
  }
  decoder.out_color_space = space == JCS_GRAYSCALE ? JCS_GRAYSCALE : JCS_RGB;
  const int orientation = orientation_of(decoder);  // markers go with the last row
  decoder.dct_method = JDCT_ISLOW;                  // the same bytes on every machine
  Image result{decoder.image_height, decoder.image_width, space == JCS_GRAYSCALE ? size_t{1} : size_t{3}, {}};
  result.pixels.resize(result.height * result.width * result.channels);
  if (!read_pixels(&reader, result.pixels.data(), result.width * result.channels))
    throw input_error("{}: not a whole JPEG image: {}", name, reader.message);
  return turned_upright(std::move(result), orientation);
}

#else

Image decode_jpeg(std::span<const uint8_t> /*bytes*/, const std::string& name) {
  throw input_error(
      "{}: JPEG is not in this build, which found no libjpeg: install libjpeg-dev and build again", name);
}

#endif

}  // namespace bitfed
