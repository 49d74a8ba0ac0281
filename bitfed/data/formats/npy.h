#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bitfed/base/byte_io.h"

namespace bitfed {

// An array of NumPy's .npy format (versions 1 to 3): a magic string, a header that is a Python dictionary,
// then the values. Integers, floats of 4 and 8 bytes, booleans and strings, little endian. Arrays of Python
// objects are pickles, which can run code: they are refused, as any other type is. Values in Fortran's order
// are put into C's.
struct NpyArray {
  char kind = 'u';              // u unsigned, i signed, f float, b boolean, U Unicode, S bytes
  size_t item_bytes = 1;        // of one value
  std::vector<uint64_t> shape;  // empty: one value
  Bytes values;                 // row-major

  size_t count() const { return item_bytes == 0 ? 0 : values.size() / item_bytes; }
  bool is_text() const { return kind == 'U' || kind == 'S'; }
  double number(size_t index) const;     // of an array that is no text
  std::string text(size_t index) const;  // whole numbers without a point; Unicode as UTF-8
};

// `name` is for error messages.
NpyArray parse_npy(std::span<const uint8_t> bytes, std::string_view name);

// The arrays of an .npz file, an archive of .npy files, by name without the ending.
struct NamedArray {
  std::string name;
  NpyArray array;
};
std::vector<NamedArray> parse_npz(std::span<const uint8_t> bytes, std::string_view name);

}  // namespace bitfed
