#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace bitfed {

// A tensor as a safetensors header describes it. What the parser leaves to its caller: whether the dtype is
// known, and whether offsets, shape and data fit together.
struct TensorEntry {
  std::string name;
  std::string dtype;
  std::vector<uint64_t> shape;
  std::vector<uint64_t> data_offsets;
};

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // in the header's order; no name occurs twice
  std::map<std::string, std::string> metadata;
};

// Parses the JSON of a header, whose grammar is fixed:
//   {"__metadata__": {"key": "value", ...}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0,
//   24]}, ...}
// The fields of a tensor may come in any order, and whitespace may stand between any two tokens. Everything
// else is an input_error that names `source`: other fields, names that occur twice (readers disagree on which
// counts), numbers that are not whole or exceed 64 bits, text that is not UTF-8.
//
// Every byte is looked at a fixed number of times and nothing nests, so a hostile header costs O(n log n)
// time in its length and no stack.
SafetensorsHeader parse_safetensors_header(std::string_view text, std::string_view source);

// A name from a header for an error's one line: control characters become '?', and long names are cut.
std::string printable_name(std::string_view name);

}  // namespace bitfed
