#include "bitfed/base/error.h"
#include "bitfed/data/formats/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    bitfed::parse_npz({data, size}, "fuzz");
  } catch (const bitfed::Error&) {
  }
  return 0;
}
