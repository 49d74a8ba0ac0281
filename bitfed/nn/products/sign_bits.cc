#include "bitfed/nn/products/sign_bits.h"

#include "bitfed/base/error.h"

namespace bitfed {

std::vector<uint8_t> pack_signs(const std::vector<float>& values) {
  std::vector<uint8_t> bytes((values.size() + 7) / 8);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= 0) bytes[i / 8] = static_cast<uint8_t>(bytes[i / 8] | (1u << (i % 8)));
  }
  return bytes;
}

std::vector<float> unpack_signs(const std::vector<uint8_t>& bytes, size_t count, std::string_view tensor) {
  if (count % 8 != 0 && bytes.back() >> (count % 8) != 0)
    throw input_error("tensor '{}': bits are set past its {} signs", tensor, count);
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = (bytes[i / 8] >> (i % 8) & 1) != 0 ? 1.0f : -1.0f;
  return values;
}

}  // namespace bitfed
