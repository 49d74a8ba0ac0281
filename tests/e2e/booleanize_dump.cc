// Booleanizes raw images with "adaptive-gaussian" for a comparison with another implementation.
//
//   booleanize_dump HEIGHT WIDTH CHANNELS WINDOW OFFSET IMAGES BITS
//
// IMAGES: bytes of images, one after another; BITS: a byte 0 or 1 for each of them, in the same order.

#include <cstdio>
#include <exception>
#include <string>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/data/booleanize/booleanizer.h"

namespace bitfed {
namespace {

Dataset load_images(char** arguments, const char* path) {
  Dataset dataset;
  dataset.name = path;
  dataset.height = std::stoul(arguments[0]);
  dataset.width = std::stoul(arguments[1]);
  dataset.channels = std::stoul(arguments[2]);
  dataset.pixels = read_file(path);
  if (dataset.image_bytes() == 0 || dataset.pixels.size() % dataset.image_bytes() != 0) {
    throw input_error("{}: found {} bytes, expected images of {}", path, dataset.pixels.size(),
                      dataset.image_bytes());
  }
  dataset.labels.resize(dataset.pixels.size() / dataset.image_bytes());
  dataset.class_names = {"any"};
  return dataset;
}

Bytes unpack(const BitImages& images) {
  Bytes bytes;
  bytes.reserve(images.bits.rows() * images.bits.columns());
  for (size_t row = 0; row < images.bits.rows(); ++row) {
    for (size_t column = 0; column < images.bits.columns(); ++column)
      bytes.push_back(images.bits.get(row, column));
  }
  return bytes;
}

void dump(char** arguments) {
  const Dataset dataset = load_images(arguments, arguments[5]);
  BooleanizerSpec spec;
  spec.kind = "adaptive-gaussian";
  spec.window = std::stoi(arguments[3]);
  spec.offset = std::stoi(arguments[4]);
  write_file_atomically(arguments[6], unpack(booleanize(spec, dataset)));
}

}  // namespace
}  // namespace bitfed

int main(int argc, char** argv) {
  if (argc != 8) {
    std::fputs("usage: booleanize_dump HEIGHT WIDTH CHANNELS WINDOW OFFSET IMAGES BITS\n", stderr);
    return 2;
  }
  try {
    bitfed::dump(argv + 1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "booleanize_dump: %s\n", error.what());
    return 2;
  }
  return 0;
}
