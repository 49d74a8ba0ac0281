#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "bitfed/base/hash/random.h"
#include "bitfed/nn/kernels/matrix.h"

namespace bitfed {
namespace {

Shorts random_shorts(size_t count, uint64_t below, const char* purpose) {
  RandomStream random({3, purpose, count});
  Shorts numbers(count);
  for (size_t i = 0; i < count; ++i)
    numbers[i] =
        static_cast<int16_t>(static_cast<int64_t>(random.below(2 * below + 1)) - static_cast<int64_t>(below));
  return numbers;
}

// Two segments of a few pairs; every number of vectors that a row of b can have, and rows that fill no tile.
constexpr size_t kSegments = 2;
constexpr size_t kPairs = 5;
constexpr size_t kRows = 13;

struct Operands {
  explicit Operands(size_t columns)
      : a(random_shorts(kSegments * kRows * 2 * kPairs, 30000, "a")),
        b(random_shorts(kSegments * kPairs * 2 * columns, 3000, "b")) {}

  int64_t sum(size_t row, size_t column, size_t columns) const {
    int64_t total = 0;
    for (size_t s = 0; s < kSegments; ++s) {
      for (size_t k = 0; k < 2 * kPairs; ++k)
        total += int64_t{a[(s * kRows + row) * 2 * kPairs + k]} *
                 b[((s * kPairs + k / 2) * columns + column) * 2 + k % 2];
    }
    return total;
  }

  Shorts a;  // segment, row, depth
  Shorts b;  // segment, pair, column, which of the pair
};

TEST(PairKernelsTest, ProductsAreThoseOfPlainLoops) {
  std::vector<uint32_t> offsets;
  for (size_t r = 0; r < kRows; ++r) offsets.push_back(static_cast<uint32_t>(r * 2 * kPairs));
  for (size_t columns = 16; columns <= 144; columns += 16) {
    const Operands operands(columns);
    for (const NeuralKernels* table : supported_neural_kernels()) {
      Matrix c(kRows, columns);
      PairProduct product{operands.a.data(),
                          offsets.data(),
                          kSegments,
                          kPairs,
                          kRows * 2 * kPairs,
                          operands.b.data(),
                          kPairs * 2 * columns,
                          c.row(0),
                          columns,
                          kRows,
                          columns,
                          0.25f};
      table->multiply_pairs(product);
      product.adds = true;
      table->multiply_pairs(product);
      Shorts rounded(kRows * columns);
      product.rounded_c = rounded.data();
      product.factor = 1e-5f;
      table->multiply_pairs(product);
      for (size_t r = 0; r < kRows; ++r) {
        for (size_t n = 0; n < columns; ++n) {
          const float sum = static_cast<float>(operands.sum(r, n, columns));
          ASSERT_EQ(c.row(r)[n], sum * 0.25f * 2) << table->name << " " << columns << " " << r << " " << n;
          ASSERT_EQ(rounded[r * columns + n], static_cast<int16_t>(std::lrint(sum * 1e-5f))) << table->name;
        }
      }
    }
  }
}

TEST(PairKernelsTest, SumsAreThoseOfPlainLoops) {
  constexpr size_t kStride = 2 * kRows;
  for (size_t columns = 16; columns <= 144; columns += 16) {
    const Shorts a = random_shorts(kPairs * kStride, 30000, "a");
    const Shorts b = random_shorts(kPairs * 2 * columns, 3000, "b");
    for (const NeuralKernels* table : supported_neural_kernels()) {
      Matrix c(kRows, columns);
      Aligned<int32_t> whole(kRows * columns);
      for (const bool adds : {false, true}) {
        table->sum_pairs(
            {a.data(), kStride, b.data(), kPairs, c.row(0), columns, kRows, columns, 0.5f, adds});
        table->sum_pairs({.a = a.data(),
                          .a_stride = kStride,
                          .b = b.data(),
                          .pairs = kPairs,
                          .c_stride = columns,
                          .rows = kRows,
                          .columns = columns,
                          .adds = adds,
                          .whole_c = whole.data()});
      }
      for (size_t r = 0; r < kRows; ++r) {
        for (size_t n = 0; n < columns; ++n) {
          int64_t sum = 0;
          for (size_t k = 0; k < kPairs; ++k) {
            for (size_t which = 0; which < 2; ++which)
              sum += int64_t{a[k * kStride + 2 * r + which]} * b[(k * columns + n) * 2 + which];
          }
          ASSERT_EQ(c.row(r)[n], static_cast<float>(sum)) << table->name << " " << columns;
          ASSERT_EQ(whole[r * columns + n], 2 * sum) << table->name << " " << columns;
        }
      }
    }
  }
}

TEST(PairKernelsTest, RowsAndSignsArePaired) {
  constexpr size_t kCount = 48;
  const Shorts even = random_shorts(kCount, 2, "even");  // zeros among them, whose sign is +1
  const Shorts odd = random_shorts(kCount, 32767, "odd");
  for (const NeuralKernels* table : supported_neural_kernels()) {
    Shorts pairs(2 * kCount);
    Shorts signs(2 * kCount);
    table->pair_shorts(even.data(), odd.data(), kCount, pairs.data());
    table->pair_signs(even.data(), odd.data(), kCount, signs.data());
    for (size_t i = 0; i < kCount; ++i) {
      EXPECT_EQ(pairs[2 * i], even[i]) << table->name;
      EXPECT_EQ(pairs[2 * i + 1], odd[i]) << table->name;
      EXPECT_EQ(signs[2 * i], even[i] < 0 ? -1 : 1) << table->name;
      EXPECT_EQ(signs[2 * i + 1], odd[i] < 0 ? -1 : 1) << table->name;
    }
  }
}

TEST(PairKernelsTest, SignsOfBitsArePaired) {
  constexpr size_t kPixels = 3;
  RandomStream random({3, "bits"});
  for (const size_t channels : {16u, 32u, 48u}) {
    const size_t words = (channels + 31) / 32;
    std::vector<uint32_t> bits[2];
    for (size_t i = 0; i < kPixels * words; ++i) {
      for (std::vector<uint32_t>& of : bits) of.push_back(random.next_u32());
    }
    for (const NeuralKernels* table : supported_neural_kernels()) {
      Shorts pairs(2 * kPixels * channels + 16);
      table->sign_pairs(bits[0].data(), bits[1].data(), kPixels, channels, pairs.data());
      for (size_t i = 0; i < 2 * kPixels * channels; ++i) {
        const size_t channel = i / 2 % channels;
        const uint32_t word = bits[i % 2][i / 2 / channels * words + channel / 32];
        ASSERT_EQ(pairs[i], (word >> (channel % 32) & 1) != 0 ? 1 : -1) << table->name << " " << i;
      }
      EXPECT_EQ(pairs[2 * kPixels * channels], 0) << table->name;
    }
  }
}

TEST(PairKernelsTest, SignsAreTransposedInPairs) {
  constexpr size_t kColumns = 32;
  for (const size_t rows : {1u, 4u, 13u, 16u}) {
    const Shorts from = random_shorts(rows * kColumns, 2, "from");
    for (const NeuralKernels* table : supported_neural_kernels()) {
      Shorts to(kColumns * 16);
      table->transpose_signs(from.data(), rows, kColumns, to.data(), 16);
      for (size_t c = 0; c < kColumns; ++c) {
        for (size_t r = 0; r < 16; ++r) {
          const int expected = r >= rows ? 0 : from[r * kColumns + c] < 0 ? -1 : 1;
          ASSERT_EQ(to[(c / 2 * 16 + r) * 2 + c % 2], expected) << table->name << " " << rows;
        }
      }
    }
  }
}

}  // namespace
}  // namespace bitfed
