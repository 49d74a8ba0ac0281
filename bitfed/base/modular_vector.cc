#include "bitfed/base/modular_vector.h"

#include <algorithm>
#include <cassert>
#include <cstring>

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
  const uint64_t size = packed_bytes(fields);
  Bytes bytes(size + sizeof(uint64_t));  // a whole word is written wherever a byte begins
  uint8_t* next = bytes.data();
  uint64_t waiting = 0;
  uint32_t count = 0;
  const auto put = [&](uint64_t value, uint32_t bits) {
    waiting |= value << count;
    count += bits;
    std::memcpy(next, &waiting, sizeof(waiting));  // little endian, as State is
    next += count / 8;
    waiting >>= count & ~7u;
    count %= 8;
  };
  size_t i = 0;
  for (const ModularField& field : fields) {
    const uint32_t low = std::min<uint32_t>(field.bits, 32);
    for (const size_t end = i + field.count; i < end; ++i) {
      put(values[i] & modular_mask(low), low);
      if (field.bits > low) put(values[i] >> low, field.bits - low);
    }
  }
  bytes.resize(size);
  return bytes;
}

ModularVector ModularVector::unpack(std::vector<ModularField> fields, std::span<const uint8_t> bytes,
                                    std::string_view source) {
  if (const uint64_t expected = packed_bytes(fields); bytes.size() != expected)
    throw input_error("{}: found {} bytes, expected {}", source, bytes.size(), expected);
  ModularVector vector{std::move(fields), {}};
  vector.values.reserve(elements_of(vector.fields));
  const uint8_t* next = bytes.data();
  const uint8_t* const end = next + bytes.size();
  uint64_t waiting = 0;
  uint32_t count = 0;
  // Four bytes at a time while there are so many: with at most 31 bits that wait, a word holds them.
  const auto get = [&](uint32_t bits) {
    if (count < bits && end - next >= 4) {
      uint32_t more = 0;
      std::memcpy(&more, next, sizeof(more));  // little endian, as State is
      next += sizeof(more);
      waiting |= static_cast<uint64_t>(more) << count;
      count += 32;
    }
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
