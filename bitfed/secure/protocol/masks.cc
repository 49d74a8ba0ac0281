#include "bitfed/secure/protocol/masks.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace bitfed {
namespace {

constexpr size_t kElements = 2048;  // of a piece of the stream
constexpr size_t kSlack = 8;        // eight bytes are read from wherever an element begins

template <typename Combine>
void combine_mask(const Secret& seed, ModularVector* vector, Combine combine) {
  thread_local KeyStream stream{Secret()};
  stream.restart(seed);
  std::array<uint8_t, kElements * 8 + kSlack> bytes;  // written before it is read
  std::span<uint64_t> rest = vector->values;
  for (const ModularField& field : vector->fields) {
    const uint64_t mask = modular_mask(field.bits);
    const size_t width = (field.bits + 7) / 8;
    for (uint64_t left = field.count; left > 0;) {
      const size_t count = std::min<uint64_t>(left, kElements);
      stream.next(std::span(bytes).first(count * width));
      const uint8_t* from = bytes.data();
#pragma GCC unroll 8
      for (uint64_t& value : rest.first(count)) {
        uint64_t drawn = 0;  // little endian, as State is
        std::memcpy(&drawn, from, sizeof(drawn));
        from += width;
        value = combine(value, drawn) & mask;
      }
      rest = rest.subspan(count);
      left -= count;
    }
  }
}

}  // namespace

void apply_mask(const Secret& seed, MaskSign sign, ModularVector* vector) {
  if (sign == MaskSign::kAdd) {
    combine_mask(seed, vector, [](uint64_t value, uint64_t drawn) { return value + drawn; });
  } else {
    combine_mask(seed, vector, [](uint64_t value, uint64_t drawn) { return value - drawn; });
  }
}

}  // namespace bitfed
