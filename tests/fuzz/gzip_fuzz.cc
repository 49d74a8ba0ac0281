#include "bitfed/base/error.h"
#include "bitfed/base/gzip.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t kLimit = 1 << 20;
  try {
    if (bitfed::gunzip({data, size}, "fuzz", kLimit).size() > kLimit) __builtin_trap();
  } catch (const bitfed::Error&) {
  }
  return 0;
}
