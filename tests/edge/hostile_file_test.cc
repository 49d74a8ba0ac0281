// Model files with a byte changed or an end missing: refused with a line, or they answer. Of the large ones
// some of the bytes behind the header are left out; the fuzzer does the rest.

#include <gtest/gtest.h>

#include <filesystem>

#include "bitfed/base/byte_io.h"
#include "include/bitfed.h"

namespace bitfed {
namespace {

// Whatever opens predicts a sample; the classes are the model's.
void open_and_predict(const Bytes& bytes) {
  bitfed_model* model = bitfed_open_bytes(bytes.data(), bytes.size());
  if (model == nullptr) {
    ASSERT_STRNE(bitfed_error(), "");
    return;
  }
  const bitfed_input input = bitfed_input_of(model);
  constexpr size_t kMost = 1 << 16;
  if (input.inputs <= kMost) {
    const std::vector<uint8_t> pixels(input.inputs, 100);
    const std::vector<float> numbers(input.inputs, 0.5f);
    uint16_t label = 0;
    const int status = input.height > 0 ? bitfed_predict_pixels(model, pixels.data(), 1, &label, nullptr)
                                        : bitfed_predict_numbers(model, numbers.data(), 1, &label, nullptr);
    EXPECT_TRUE(status != 0 || label < bitfed_class_count(model));
  }
  bitfed_close(model);
}

TEST(HostileFile, AnyByteChangedAndAnyLength) {
  constexpr size_t kHeader = 1500;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(BITFED_TESTS_DIR) / "golden")) {
    if (entry.path().extension() != ".safetensors") continue;
    SCOPED_TRACE(entry.path().filename().string());
    const Bytes whole = read_file(entry.path());
    const size_t step = 1 + whole.size() / 4000 * 10;
    for (size_t i = 0; i < whole.size(); i += i < kHeader ? 1 : step) {
      Bytes changed = whole;
      changed[i] = static_cast<uint8_t>(changed[i] ^ (i % 2 == 0 ? 0x80 : 0x01));
      open_and_predict(changed);
      open_and_predict(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(i)));
    }
  }
}

}  // namespace
}  // namespace bitfed
