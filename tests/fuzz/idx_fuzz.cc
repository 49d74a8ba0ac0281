#include "bitfed/base/error.h"
#include "bitfed/data/formats/idx.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const bitfed::IdxImages images = bitfed::parse_idx_images({data, size}, "fuzz");
    if (images.pixels.size() != images.count * images.height * images.width) __builtin_trap();
  } catch (const bitfed::Error&) {
  }
  try {
    if (bitfed::parse_idx_labels({data, size}, "fuzz").empty()) __builtin_trap();
  } catch (const bitfed::Error&) {
  }
  return 0;
}
