#include "bitfed/base/error.h"
#include "bitfed/data/formats/leaf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const std::vector<size_t>& image : {std::vector<size_t>{}, std::vector<size_t>{1, 2, 1}}) {
    try {
      const auto samples = bitfed::parse_leaf(text, image, "fuzz");
      if (samples.size() != samples.people.size()) __builtin_trap();
      bitfed::numbered(samples, "fuzz", {});
    } catch (const bitfed::Error&) {
    }
  }
  return 0;
}
