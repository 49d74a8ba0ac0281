#include "bitfed/base/error.h"
#include "bitfed/data/formats/image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const bitfed::Image image = bitfed::decode_image({data, size}, "fuzz");
    if (image.pixels.size() != image.height * image.width * image.channels) __builtin_trap();
    bitfed::with_channels(bitfed::resized(image, 3, 5), 4 - image.channels);
  } catch (const bitfed::Error&) {
  }
  return 0;
}
