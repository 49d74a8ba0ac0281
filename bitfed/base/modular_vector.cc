#include "bitfed/base/modular_vector.h"

#include <algorithm>
#include <cassert>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

uint64_t packed_bytes(std::span<const ModularField> fields) {
  uint64_t bits = 0;
  for (const ModularField& field : fields) bits += field.count * field.bits;
  return (bits + 7) / 8;
}

template <typename Combine>
void combine(ModularVector* vector, const ModularVector& other, const Combine& combine_two) {
  assert(vector->fields == other.fields);
  size_t i = 0;
  for (const ModularField& field : vector->fields) {
    const uint64_t mask = modular_mask(field.bits);
    for (const size_t end = i + field.count; i < end; ++i)
      vector->values[i] = combine_two(vector->values[i], other.values[i]) & mask;
  }
}

}  // namespace

uint64_t elements_of(std::span<const ModularField> fields) {
  uint64_t count = 0;
  for (const ModularField& field : fields) count += field.count;
  return count;
}

ModularVector ModularVector::zero(std::vector<ModularField> fields) {
  const uint64_t count = elements_of(fields);
  return {std::move(fields), std::vector<uint64_t>(count)};
}

void ModularVector::add(const ModularVector& other) {
  combine(this, other, [](uint64_t a, uint64_t b) { return a + b; });
}

void ModularVector::subtract(const ModularVector& other) {
  combine(this, other, [](uint64_t a, uint64_t b) { return a - b; });
}

// At most 7 bits wait for their byte; with the next element that is at most 69. Its low part goes first.
Bytes ModularVector::pack() const {
  Bytes bytes;
  bytes.reserve(packed_bytes(fields));
  uint64_t waiting = 0;
  uint32_t count = 0;
  const auto put = [&](uint64_t value, uint32_t bits) {
    waiting |= value << count;
    count += bits;
    for (; count >= 8; count -= 8, waiting >>= 8) bytes.push_back(static_cast<uint8_t>(waiting & 0xff));
  };
  size_t i = 0;
  for (const ModularField& field : fields) {
    const uint32_t low = std::min<uint32_t>(field.bits, 32);
    for (const size_t end = i + field.count; i < end; ++i) {
      put(values[i] & modular_mask(low), low);
      if (field.bits > low) put(values[i] >> low, field.bits - low);
    }
  }
  if (count > 0) bytes.push_back(static_cast<uint8_t>(waiting));
  return bytes;
}

ModularVector ModularVector::unpack(std::vector<ModularField> fields, std::span<const uint8_t> bytes,
                                    std::string_view source) {
  if (const uint64_t expected = packed_bytes(fields); bytes.size() != expected)
    throw input_error("{}: found {} bytes, expected {}", source, bytes.size(), expected);
  ModularVector vector{std::move(fields), {}};
  vector.values.reserve(elements_of(vector.fields));
  const uint8_t* next = bytes.data();
  uint64_t waiting = 0;
  uint32_t count = 0;
  const auto get = [&](uint32_t bits) {
    for (; count < bits; count += 8) waiting |= static_cast<uint64_t>(*next++) << count;
    const uint64_t value = waiting & modular_mask(bits);
    waiting >>= bits;
    count -= bits;
    return value;
  };
  for (const ModularField& field : vector.fields) {
    const uint32_t low = std::min<uint32_t>(field.bits, 32);
    for (uint64_t i = 0; i < field.count; ++i) {
      const uint64_t value = get(low);
      vector.values.push_back(field.bits > low ? value | get(field.bits - low) << low : value);
    }
  }
  if (waiting != 0) throw input_error("{}: found bits past the end", source);
  return vector;
}

}  // namespace bitfed
