#include "bitfed/base/error.h"
#include "bitfed/data/formats/mat.h"
#include "bitfed/data/formats/svhn.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<std::string> wanted = {"X", "y"};
  try {
    for (const bitfed::MatArray& array : bitfed::parse_mat({data, size}, "fuzz", wanted)) {
      uint64_t expected = 1;
      for (const uint64_t dimension : array.dimensions) expected *= dimension;
      if (array.values.size() != expected) __builtin_trap();
    }
    const bitfed::Dataset dataset = bitfed::parse_svhn({data, size}, "fuzz");
    if (dataset.pixels.size() != dataset.size() * dataset.image_bytes()) __builtin_trap();
  } catch (const bitfed::Error&) {
  }
  return 0;
}
