#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace bitfed {

// Signs as bits, eight per byte from the lowest on: 1 for values at or above 0. Bits past the end are 0.
std::vector<uint8_t> pack_signs(const std::vector<float>& values);

// The `count` signs as +1 and -1. Throws an input_error that names `tensor` if bits past the end are set.
std::vector<float> unpack_signs(const std::vector<uint8_t>& bytes, size_t count, std::string_view tensor);

}  // namespace bitfed
