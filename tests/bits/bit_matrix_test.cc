#include "bitfed/bits/bit_matrix.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "bitfed/base/hash/random.h"

namespace bitfed {
namespace {

constexpr size_t kAwkwardSizes[] = {0, 1, 7, 8, 9, 31, 33, 63, 64, 65, 127, 128, 129, 200};

std::vector<uint64_t> random_words(uint64_t seed, size_t count) {
  RandomStream random({.seed = seed, .purpose = "bit matrix test"});
  std::vector<uint64_t> words(count);
  for (uint64_t& word : words) word = random.next_u64();
  return words;
}

TEST(BitMatrix, RowsBeginAtTheAlignment) {
  EXPECT_EQ(BitMatrix(3, 64).stride(), 1u);
  EXPECT_EQ(BitMatrix(3, 65).stride(), 2u);
  EXPECT_EQ(BitMatrix(3, 0).stride(), 0u);
  const BitMatrix blocks(3, 65, kBlockWords);
  EXPECT_EQ(blocks.stride(), kBlockWords);
  for (size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks.row(row)) % 64, 0u);
  }
}

TEST(BitMatrix, SetAndGetEveryBit) {
  for (const size_t columns : {1, 63, 64, 65, 127}) {
    BitMatrix matrix(2, columns, kBlockWords);
    for (size_t column = 0; column < columns; ++column) {
      matrix.set(1, column, true);
      EXPECT_TRUE(matrix.get(1, column));
      EXPECT_FALSE(matrix.get(0, column));
      matrix.set(0, column, true);
      matrix.set(0, column, false);
    }
    EXPECT_EQ(matrix.row(0)[0], 0u);
    // All columns are set, and nothing behind them.
    for (size_t bit = 0; bit < 64 * matrix.stride(); ++bit) {
      EXPECT_EQ(get_bit(matrix.row(1), bit), bit < columns);
    }
  }
}

TEST(BitMatrix, EqualMeansSameShapeAndBits) {
  BitMatrix a(2, 70);
  BitMatrix b(2, 70);
  EXPECT_EQ(a, b);
  b.set(1, 69, true);
  EXPECT_NE(a, b);
  a.set(1, 69, true);
  EXPECT_EQ(a, b);
  EXPECT_NE(BitMatrix(2, 70), BitMatrix(2, 71));
}

TEST(BitMatrix, SizesRoundUp) {
  EXPECT_EQ(words_for(0), 0u);
  EXPECT_EQ(words_for(64), 1u);
  EXPECT_EQ(words_for(65), 2u);
  EXPECT_EQ(blocks_for(512), 1u);
  EXPECT_EQ(blocks_for(513), 2u);
}

// Exactly as many words as the contract allows it to read, so that a sanitizer sees one too many.
void expect_copied(size_t from, size_t to, size_t count) {
  const std::vector<uint64_t> source = random_words(from * 1000 + to, words_for(from + count));
  std::vector<uint64_t> target = random_words(count, words_for(to + count) + 1);
  std::vector<uint64_t> expected = target;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bit = uint64_t{1} << ((to + i) % 64);
    target[(to + i) / 64] &= ~bit;
    expected[(to + i) / 64] &= ~bit;
    if (get_bit(source.data(), from + i)) expected[(to + i) / 64] |= bit;
  }
  or_bits(source.data(), from, target.data(), to, count);
  EXPECT_EQ(target, expected) << "from " << from << " to " << to << ", " << count << " bits";
}

TEST(OrBits, AgreesWithBitByBitForAllShifts) {
  for (size_t from = 0; from < 66; ++from) {
    for (size_t to = 0; to < 66; ++to) {
      for (const size_t count : {0, 1, 63, 64, 65, 130}) expect_copied(from, to, count);
    }
  }
}

TEST(OrBits, AgreesForAllCounts) {
  for (size_t count = 0; count < 200; ++count) {
    expect_copied(0, 0, count);
    expect_copied(5, 61, count);
    expect_copied(61, 5, count);
  }
}

TEST(Transpose, TurnsAboutTheDiagonal) {
  for (const size_t rows : {1, 5, 31, 32, 33, 64}) {
    for (const size_t columns : {1, 24, 32, 33, 63, 64}) {
      std::vector<uint64_t> square = random_words(rows, 64);
      for (size_t i = 0; i < 64; ++i) {
        if (i >= rows) square[i] = 0;
        if (columns < 64) square[i] &= (uint64_t{1} << columns) - 1;
      }
      const std::vector<uint64_t> before = square;
      transpose_64(square.data(), rows, columns);
      for (size_t i = 0; i < 64; ++i) {
        for (size_t j = 0; j < 64; ++j) {
          ASSERT_EQ(get_bit(&square[j], i), get_bit(&before[i], j)) << i << ", " << j;
        }
      }
    }
  }
}

TEST(BitBytes, FirstBitIsTheLowest) {
  const uint64_t words[] = {0x8877665544332211u, 0x3ffu};
  std::vector<uint8_t> bytes(10, 0xee);
  bits_to_bytes(words, 74, bytes.data());
  EXPECT_EQ(bytes, (std::vector<uint8_t>{0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0xff, 0x03}));
}

TEST(BitBytes, ThereAndBack) {
  for (const size_t bits : kAwkwardSizes) {
    std::vector<uint64_t> words(words_for(bits));
    const std::vector<uint64_t> noise = random_words(bits, words.size());
    or_bits(noise.data(), 0, words.data(), 0, bits);
    std::vector<uint8_t> bytes((bits + 7) / 8);
    bits_to_bytes(words.data(), bits, bytes.data());
    std::vector<uint64_t> back(words.size(), ~uint64_t{0});
    bytes_to_bits(bytes.data(), bits, back.data());
    EXPECT_EQ(back, words) << bits << " bits";
  }
}

// Bytes come from files: what stands behind the last bit must not get into the padding of a row.
TEST(BitBytes, PaddingStaysZero) {
  for (const size_t bits : kAwkwardSizes) {
    const std::vector<uint8_t> bytes((bits + 7) / 8, 0xff);
    std::vector<uint64_t> words(words_for(bits));
    bytes_to_bits(bytes.data(), bits, words.data());
    for (size_t bit = 0; bit < 64 * words.size(); ++bit) {
      EXPECT_EQ(get_bit(words.data(), bit), bit < bits) << bits << " bits";
    }
  }
}

}  // namespace
}  // namespace bitfed
