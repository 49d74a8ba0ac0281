#include "bitfed/base/error.h"
#include "bitfed/model/state.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  bitfed::State state;
  try {
    state = bitfed::decode({data, size}, "fuzz");
  } catch (const bitfed::Error&) {
    return 0;
  }
  // What was accepted must survive the round trip; an Error from here is a finding.
  if (!(bitfed::decode(bitfed::encode(state), "again") == state)) __builtin_trap();
  return 0;
}
