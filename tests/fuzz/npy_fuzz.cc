#include "bitfed/base/error.h"
#include "bitfed/data/formats/arrays.h"

// Also as a set of labels and samples, which reads every value.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const bitfed::NpyArray array = bitfed::parse_npy({data, size}, "fuzz");
    for (size_t i = 0; i < array.count(); ++i) array.text(i);
    const auto samples = bitfed::samples_of_arrays({&array, &array, &array, nullptr}, {}, "fuzz");
    if (samples.size() != samples.people.size()) __builtin_trap();
    bitfed::numbered(samples, "fuzz", {});
  } catch (const bitfed::Error&) {
  }
  return 0;
}
