#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

namespace bitfed {

// An allocator whose memory begins at a cache line, as kernels need it.
template <typename T>
struct CacheAligned {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};

  CacheAligned() = default;
  template <typename U>
  CacheAligned(const CacheAligned<U>&) {}
  T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kAlignment)); }
  void deallocate(T* memory, size_t) { ::operator delete(memory, kAlignment); }
  template <typename U>
  bool operator==(const CacheAligned<U>&) const {
    return true;
  }
};

template <typename T>
using AlignedVector = std::vector<T, CacheAligned<T>>;

inline constexpr size_t kWordBits = 64;
inline constexpr size_t kBlockBits = 512;  // one cache line; one register of the widest unit
inline constexpr size_t kBlockWords = kBlockBits / kWordBits;

constexpr size_t words_for(size_t bits) {
  return (bits + kWordBits - 1) / kWordBits;
}
constexpr size_t blocks_for(size_t bits) {
  return (bits + kBlockBits - 1) / kBlockBits;
}

inline bool get_bit(const uint64_t* words, size_t index) {
  return words[index / 64] >> (index % 64) & 1;
}
inline void set_bit(uint64_t* words, size_t index) {
  words[index / 64] |= uint64_t{1} << (index % 64);
}

// Rows of packed bits. Bit i of a row is bit i % 64 of its word i / 64. Rows are `stride` words apart, a
// multiple of `alignment_words`. Invariant: the padding bits between columns() and the stride are zero.
class BitMatrix {
 public:
  BitMatrix() = default;
  BitMatrix(size_t rows, size_t columns, size_t alignment_words = 1)
      : rows_(rows),
        columns_(columns),
        stride_((words_for(columns) + alignment_words - 1) / alignment_words * alignment_words),
        words_(rows * stride_) {}

  size_t rows() const { return rows_; }
  size_t columns() const { return columns_; }
  size_t stride() const { return stride_; }  // in words
  uint64_t* row(size_t index) { return words_.data() + index * stride_; }
  const uint64_t* row(size_t index) const { return words_.data() + index * stride_; }
  bool get(size_t row_index, size_t column) const { return get_bit(row(row_index), column); }
  void set(size_t row_index, size_t column, bool value) {
    const uint64_t bit = uint64_t{1} << (column % 64);
    uint64_t& word = row(row_index)[column / 64];
    word = value ? word | bit : word & ~bit;
  }
  bool operator==(const BitMatrix&) const = default;

 private:
  size_t rows_ = 0;
  size_t columns_ = 0;
  size_t stride_ = 0;
  AlignedVector<uint64_t> words_;
};

// Copies `count` bits from bit `from` of `source` to bit `to` of `target`, whose bits there must be zero.
// Reads no word of the source beyond the one that holds the last copied bit.
void or_bits(const uint64_t* source, size_t from, uint64_t* target, size_t to, size_t count);

// Transposes a matrix of 64 x 64 bits in place: bit j of row i becomes bit i of row j. All bits beyond the
// first `rows` rows and `columns` columns must be zero. Faster where both are at most 32.
void transpose_64(uint64_t* square, size_t rows = 64, size_t columns = 64);

// Bits to and from bytes, eight per byte, the first in the lowest bit: the form of files and messages.
// bytes_to_bits ignores the bits of the last byte beyond `bits`, so that padding stays zero.
void bits_to_bytes(const uint64_t* words, size_t bits, uint8_t* bytes);
void bytes_to_bits(const uint8_t* bytes, size_t bits, uint64_t* words);

}  // namespace bitfed
