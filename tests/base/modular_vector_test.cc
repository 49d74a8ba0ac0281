#include "bitfed/base/modular_vector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bitfed/base/hash/random.h"
#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

TEST(ModularVectorTest, PacksFromTheLowestBit) {
  const ModularVector vector{{{3, 3}, {1, 12}}, {0b101, 0b011, 0b110, 0xabc}};
  // 110 011 101 is 0x19d; 0xabc follows from bit 9 on.
  EXPECT_EQ(vector.pack(), (Bytes{0x9d, 0x79, 0x15}));
  EXPECT_EQ(ModularVector::unpack(vector.fields, vector.pack(), "x"), vector);
}

TEST(ModularVectorTest, EverySizeComesBack) {
  RandomStream random({1, "modular"});
  for (uint32_t bits = 1; bits <= ModularVector::kMaxBits; ++bits) {
    ModularVector vector = ModularVector::zero({{5, bits}, {1, 7}, {2, bits}});
    for (size_t i = 0; i < vector.values.size(); ++i)
      vector.values[i] = random.next_u64() & modular_mask(i == 5 ? 7 : bits);
    EXPECT_EQ(ModularVector::unpack(vector.fields, vector.pack(), "x"), vector) << bits;
  }
}

// Bit by bit, for every size and for lengths around a word.
TEST(ModularVectorTest, PacksAsPlainLoopsDo) {
  RandomStream random({2, "modular"});
  for (uint32_t bits = 1; bits <= ModularVector::kMaxBits; ++bits) {
    for (const uint64_t count : {1, 2, 3, 31, 33, 65}) {
      ModularVector vector = ModularVector::zero({{count, bits}});
      for (uint64_t& value : vector.values) value = random.next_u64() & modular_mask(bits);
      Bytes expected((count * bits + 7) / 8);
      for (size_t i = 0; i < count * bits; ++i)
        expected[i / 8] |= static_cast<uint8_t>((vector.values[i / bits] >> i % bits & 1) << i % 8);
      EXPECT_EQ(vector.pack(), expected) << bits << " bits, " << count;
      EXPECT_EQ(ModularVector::unpack(vector.fields, expected, "x"), vector);
    }
  }
}

TEST(ModularVectorTest, SumsWrap) {
  ModularVector sum{{{2, 4}, {1, 62}}, {9, 1, modular_mask(62)}};
  const ModularVector other{{{2, 4}, {1, 62}}, {9, 2, 2}};
  sum.add(other);
  EXPECT_EQ(sum.values, (std::vector<uint64_t>{2, 3, 1}));
  sum.subtract(other);
  sum.subtract(other);
  EXPECT_EQ(sum.values, (std::vector<uint64_t>{0, 15, modular_mask(62) - 2}));
}

TEST(ModularVectorTest, NegativeNumbers) {
  EXPECT_EQ(to_modular(-1, 4), 15u);
  EXPECT_EQ(from_modular(15, 4), -1);
  EXPECT_EQ(from_modular(8, 4), -8);
  EXPECT_EQ(from_modular(7, 4), 7);
  const int64_t smallest = -(int64_t{1} << 61);
  EXPECT_EQ(from_modular(to_modular(smallest, 62), 62), smallest);
}

TEST(ModularVectorTest, BytesThatDoNotFit) {
  const auto unpack = [](const Bytes& bytes) { ModularVector::unpack({{3, 3}}, bytes, "client 1"); };
  EXPECT_THAT(error_text([&] { unpack({1}); }), HasSubstr("client 1: found 1 bytes, expected 2"));
  EXPECT_THAT(error_text([&] { unpack({1, 2}); }), HasSubstr("bits past the end"));
  unpack({1, 1});
}

}  // namespace
}  // namespace bitfed
