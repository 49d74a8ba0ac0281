#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bitfed/base/byte_io.h"

namespace bitfed {

// A variable of a MATLAB 5 file: an array of integers from 0 to 255, of any stored type. Column-major as in
// MATLAB: the first dimension varies fastest.
struct MatArray {
  std::string name;
  std::vector<uint64_t> dimensions;
  Bytes values;
};

// Reads the variables named in `wanted` from a MATLAB 5 MAT-file (little endian, compressed or not) and skips
// the others. The format is specified in "MAT-File Format", The MathWorks, chapter 1.
std::vector<MatArray> parse_mat(std::span<const uint8_t> bytes, std::string_view name,
                                std::span<const std::string> wanted);

}  // namespace bitfed
