#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bitfed/base/byte_io.h"

namespace bitfed {

// A variable of a MATLAB 5 file: an array of whole numbers from 0 to 255, whatever type they are stored
// as. Column by column, as MATLAB has it: the first dimension runs fastest.
struct MatArray {
  std::string name;
  std::vector<uint64_t> dimensions;
  Bytes values;
};

// Reads those variables of a MATLAB 5 MAT-file (little endian, packed or not) that `wanted` names and
// skips the others. The format is specified in "MAT-File Format", The MathWorks, chapter 1.
std::vector<MatArray> parse_mat(std::span<const uint8_t> bytes, std::string_view name,
                                std::span<const std::string> wanted);

}  // namespace bitfed
