#include "bitfed/tsetlin/clause_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>

#include "bitfed/base/hash/digest.h"
#include "bitfed/base/hash/random.h"
#include "bitfed/base/range_coder.h"
#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

ClauseLayout flat(size_t width) {
  return clause_layout({.height = 1, .width = width, .planes = 1, .patch_height = 1, .patch_width = width},
                       {});
}

BooleanizerSpec colours(int levels) {
  BooleanizerSpec spec;
  spec.kind = "colour-thermometer";
  spec.levels = levels;
  return spec;
}

std::vector<ClauseLayout> layouts() {
  BooleanizerSpec quantile;
  quantile.kind = "quantile";
  quantile.cuts = {{0.2f, 0.4f, 0.6f}, {0.5f}, {}, {0.1f, 0.9f}};
  return {
      flat(1),
      flat(33),
      clause_layout({.height = 28, .width = 28, .planes = 1, .patch_height = 10, .patch_width = 10}, {}),
      clause_layout({.height = 9, .width = 4, .planes = 3, .patch_height = 2, .patch_width = 4}, {}),
      clause_layout({.height = 8, .width = 9, .planes = 24, .patch_height = 3, .patch_width = 2}, colours(8)),
      clause_layout({.height = 1, .width = 1, .planes = 6, .patch_height = 1, .patch_width = 1}, quantile)};
}

WeightedClauses random_clauses(const ClauseLayout& layout, size_t count, RandomStream& random) {
  WeightedClauses clauses{BitMatrix(count, layout.literals()), {}};
  for (size_t row = 0; row < count; ++row) {
    const double density = random.uniform() * random.uniform();
    for (size_t literal = 0; literal < layout.literals(); ++literal) {
      if (random.uniform() < density) clauses.actions.set(row, literal, true);
    }
    if (random.below(4) != 0) reduce_clause(layout, clauses.actions.row(row));
    clauses.weights.push_back(static_cast<int32_t>(1 + random.below(1u << random.below(25))));
  }
  return clauses;
}

TEST(ClauseCodecTest, RoundTrip) {
  RandomStream random({1, "codec"});
  for (const ClauseLayout& layout : layouts()) {
    for (const size_t count : {0u, 1u, 2u, 7u, 100u}) {
      const WeightedClauses clauses = random_clauses(layout, count, random);
      const Bytes bytes = encode_clauses(layout, clauses);
      EXPECT_EQ(decode_clauses(layout, count, bytes, "test"), clauses);
      EXPECT_EQ(encode_clauses(layout, clauses), bytes);
    }
  }
}

TEST(ClauseCodecTest, ExtremeClauses) {
  for (const ClauseLayout& layout : layouts()) {
    WeightedClauses clauses{BitMatrix(4, layout.literals()), {1, kMaximumWeight, 2, 1}};
    for (size_t literal = 0; literal < layout.literals(); ++literal) clauses.actions.set(1, literal, true);
    clauses.actions.set(2, 0, true);
    clauses.actions.set(2, layout.features, true);
    clauses.actions.set(3, layout.literals() - 1, true);
    EXPECT_EQ(decode_clauses(layout, 4, encode_clauses(layout, clauses), "test"), clauses);
  }
}

// The whole message of one empty clause of weight 1 and one pixel, from the definition with whole numbers:
// all contexts are new, so every decision halves the range, which begins at 2^64 - 1; a "no" adds the lower
// half, which is (range >> 16) * 2^15. The weight has no bits after its first: no to 15, 7, 3 and 1. It is
// reduced: yes. The pixel is not demanded: no.
TEST(ClauseCodecTest, ByHand) {
  uint64_t low = 0;
  uint64_t range = UINT64_MAX;
  for (const bool decision : {false, false, false, false, true, false}) {
    const uint64_t half = (range >> 16) << 15;
    if (!decision) low += half;
    range = decision ? half : range - half;
  }
  Bytes expected;
  for (int shift = 56; shift >= 0; shift -= 8) expected.push_back(static_cast<uint8_t>(low >> shift));
  // CRC-32 over the number of clauses and of literals, eight bytes each, and the bytes themselves.
  Bytes summed = {1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0};
  summed.insert(summed.end(), expected.begin(), expected.end());
  const uLong sum = crc32_z(0, summed.data(), summed.size());
  for (int shift = 0; shift < 32; shift += 8) expected.push_back(static_cast<uint8_t>(sum >> shift));
  EXPECT_EQ(encode_clauses(flat(1), {BitMatrix(1, 2), {1}}), expected);
}

double entropy(const std::vector<double>& probabilities) {
  double bits = 0;
  for (const double p : probabilities) bits -= p * std::log2(p);
  return bits;
}

// Clauses drawn from a source whose entropy is known.
TEST(ClauseCodecTest, NearTheEntropy) {
  const ClauseLayout layout = flat(64);
  RandomStream random({4, "entropy"});
  constexpr size_t kCount = 2000;
  WeightedClauses clauses{BitMatrix(kCount, layout.literals()), {}};
  for (size_t row = 0; row < kCount; ++row) {
    for (size_t pixel = 0; pixel < 64; ++pixel) {
      const double drawn = random.uniform();
      if (drawn < 0.05) clauses.actions.set(row, pixel, true);
      if (drawn > 0.75) clauses.actions.set(row, 64 + pixel, true);
    }
    clauses.weights.push_back(static_cast<int32_t>(64 + random.below(64)));
  }
  const double ideal = kCount * (6 + 64 * entropy({0.05, 0.25, 0.7})) / 8;
  const double size = static_cast<double>(encode_clauses(layout, clauses).size());
  EXPECT_GT(size, 0.99 * ideal);
  EXPECT_LT(size, 1.02 * ideal);
}

// Demands that keep to their neighbours cost less than their number alone would.
TEST(ClauseCodecTest, LearnsFromNeighbours) {
  const ClauseLayout layout =
      clause_layout({.height = 28, .width = 28, .planes = 1, .patch_height = 10, .patch_width = 10}, {});
  RandomStream random({5, "neighbours"});
  WeightedClauses clauses{BitMatrix(500, layout.literals()), std::vector<int32_t>(500, 1)};
  WeightedClauses scattered = clauses;
  for (size_t row = 0; row < 500; ++row) {
    const size_t left = random.below(6);
    for (size_t pixel = 0; pixel < 100; ++pixel) {
      if (pixel % 10 - left < 5) clauses.actions.set(row, layout.content[pixel].first, true);
      if (random.below(2) == 0) scattered.actions.set(row, layout.content[pixel].first, true);
    }
  }
  EXPECT_LT(encode_clauses(layout, clauses).size() * 3, encode_clauses(layout, scattered).size());
}

// The bytes are a format: another platform or build must make the same.
TEST(ClauseCodecTest, Golden) {
  RandomStream random({6, "golden"});
  Bytes all;
  for (const ClauseLayout& layout : layouts()) {
    const Bytes bytes = encode_clauses(layout, random_clauses(layout, 50, random));
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  EXPECT_EQ(sha256_hex(all).substr(0, 16), "50d4df2146b181bf");
}

class HostileBytesTest : public testing::Test {
 protected:
  HostileBytesTest() : layout_(layouts()[4]) {
    RandomStream random({7, "hostile"});
    bytes_ = encode_clauses(layout_, random_clauses(layout_, kCount, random));
  }

  std::string error(const Bytes& bytes, size_t count = kCount) const {
    const std::string text = error_text([&] { decode_clauses(layout_, count, bytes, "tensor 'x'"); });
    EXPECT_EQ(text.find('\n'), std::string::npos);
    return text;
  }

  // The bytes with a checksum that fits, whatever they are.
  Bytes signed_bytes(Bytes body, size_t count = kCount) const {
    Bytes sizes(16);
    sizes[0] = static_cast<uint8_t>(count);
    sizes[8] = static_cast<uint8_t>(layout_.literals());
    sizes[9] = static_cast<uint8_t>(layout_.literals() >> 8);
    const uLong sum = crc32_z(crc32_z(0, sizes.data(), sizes.size()), body.data(), body.size());
    for (int shift = 0; shift < 32; shift += 8) body.push_back(static_cast<uint8_t>(sum >> shift));
    return body;
  }
  Bytes body() const { return Bytes(bytes_.begin(), bytes_.end() - 4); }

  static constexpr size_t kCount = 20;
  ClauseLayout layout_;
  Bytes bytes_;
};

TEST_F(HostileBytesTest, TheHelperSignsAsTheWriterDoes) {
  EXPECT_EQ(signed_bytes(body()), bytes_);
  EXPECT_EQ(error(bytes_), "");
}

TEST_F(HostileBytesTest, EveryFlippedBitIsRefused) {
  for (size_t bit = 0; bit < 8 * bytes_.size(); ++bit) {
    Bytes flipped = bytes_;
    flipped[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    ASSERT_THAT(error(flipped), HasSubstr("tensor 'x': ")) << bit;
  }
}

TEST_F(HostileBytesTest, EveryTruncationIsRefused) {
  for (size_t size = 0; size < bytes_.size(); ++size) {
    ASSERT_NE(error({bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(size)}), "") << size;
  }
}

// With a checksum that fits, too: the bytes must end where the last clause does, and as its writer ends it.
TEST_F(HostileBytesTest, OtherEndsAreRefused) {
  for (size_t size = 0; size < body().size(); ++size) {
    Bytes cut = body();
    cut.resize(size);
    ASSERT_NE(error(signed_bytes(cut)), "") << size;
  }
  for (const size_t more : {1u, 4u, 5u, 100u}) {
    Bytes longer = body();
    longer.resize(longer.size() + more);
    EXPECT_THAT(error(signed_bytes(longer)), HasSubstr("do not end with clause 20"));
  }
  for (size_t bit = 8 * (body().size() - 8); bit < 8 * body().size(); ++bit) {
    Bytes other = body();
    other[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    EXPECT_NE(error(signed_bytes(other)), "") << bit;
  }
}

TEST_F(HostileBytesTest, AnotherNumberOfClausesIsRefused) {
  for (const size_t count : {0u, 19u, 21u, 1000u}) {
    EXPECT_THAT(error(bytes_, count), HasSubstr(fmt::format("expected {} clauses", count)));
  }
}

TEST_F(HostileBytesTest, AnotherNumberOfClausesIsRefusedWithItsChecksumToo) {
  for (const size_t count : {0u, 19u, 21u, 100u}) EXPECT_NE(error(signed_bytes(body(), count), count), "");
}

TEST_F(HostileBytesTest, AnotherLayoutIsRefused) {
  for (const ClauseLayout& layout : layouts()) {
    if (layout.literals() == layout_.literals()) continue;
    EXPECT_NE(error_text([&] { decode_clauses(layout, kCount, bytes_, "x"); }), "");
  }
}

// A reduced clause has one form. In fresh contexts a decision is the same with and without its context.
TEST_F(HostileBytesTest, TheLongFormOfAReducedClauseIsRefused) {
  layout_ = flat(1);
  for (const auto& [first, second] : {std::pair(false, false), {true, false}, {true, true}}) {
    RangeEncoder encoder;
    // The weight 1, not demands, not never; then the pixel and its negation.
    for (const bool decision : {false, false, false, false, false, false, first, second})
      encoder.code(decision);
    EXPECT_THAT(error(signed_bytes(encoder.finish(), 1), 1), HasSubstr("coded by literal"));
  }
}

TEST_F(HostileBytesTest, AWeightOutOfRangeIsRefused) {
  WeightedClauses clauses{BitMatrix(1, layout_.literals()), {kMaximumWeight + 1}};
  EXPECT_THAT(error(encode_clauses(layout_, clauses), 1), HasSubstr("found weight 16777217 of clause 0"));
}

}  // namespace
}  // namespace bitfed
