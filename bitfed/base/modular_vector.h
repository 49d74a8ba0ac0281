#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "bitfed/base/byte_io.h"

namespace bitfed {

// Elements of one size: each is an integer modulo 2^bits.
struct ModularField {
  uint64_t count = 0;
  uint32_t bits = 1;

  bool operator==(const ModularField&) const = default;
};

// A vector of integers modulo powers of two. Sums are exact in any order, and what was added can be taken
// off again without a trace.
struct ModularVector {
  static constexpr uint32_t kMaxBits = 62;

  std::vector<ModularField> fields;
  std::vector<uint64_t> values;  // of all fields, each below 2^bits

  static ModularVector zero(std::vector<ModularField> fields);

  // `other` must have the same fields.
  void add(const ModularVector& other);
  void subtract(const ModularVector& other);

  // The elements without gaps, from the lowest bit on; bits past the end are 0.
  Bytes pack() const;
  // The inverse. An input_error that names `source` for another number of bytes, or bits past the end.
  static ModularVector unpack(std::vector<ModularField> fields, std::span<const uint8_t> bytes,
                              std::string_view source);

  bool operator==(const ModularVector&) const = default;
};

constexpr uint64_t modular_mask(uint32_t bits) {
  return (uint64_t{1} << bits) - 1;
}

// An integer from -2^(bits - 1) on below 2^(bits - 1), as an element and back.
constexpr uint64_t to_modular(int64_t value, uint32_t bits) {
  return static_cast<uint64_t>(value) & modular_mask(bits);
}
constexpr int64_t from_modular(uint64_t value, uint32_t bits) {
  const auto number = static_cast<int64_t>(value);
  return value >> (bits - 1) != 0 ? number - (int64_t{1} << bits) : number;
}

uint64_t elements_of(std::span<const ModularField> fields);

}  // namespace bitfed
