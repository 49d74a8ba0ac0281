#include "bitfed/tsetlin/machine/patches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <vector>

#include "bitfed/bits/bit_matrix.h"
#include "tests/tsetlin/naive_patches.h"

namespace bitfed {

void PrintTo(const PatchShape& shape, std::ostream* out) {
  *out << shape.height << "x" << shape.width << "x" << shape.planes << " patch " << shape.patch_height << "x"
       << shape.patch_width;
}

namespace {

RandomStream stream(uint64_t number) {
  return RandomStream({.seed = number, .purpose = "patches test"});
}

TEST(PatchShape, CountsByHand) {
  const PatchShape shape = {28, 28, 1, 10, 10};
  EXPECT_EQ(shape.positions_y(), 19u);
  EXPECT_EQ(shape.positions_x(), 19u);
  EXPECT_EQ(shape.patches(), 361u);
  EXPECT_EQ(shape.position_bits(), 36u);
  EXPECT_EQ(shape.content_bits(), 100u);
  EXPECT_EQ(shape.features(), 136u);
  EXPECT_EQ(shape.literals(), 272u);
  EXPECT_FALSE(shape.is_flat());

  const PatchShape colour = {32, 32, 24, 3, 3};
  EXPECT_EQ(colour.patches(), 900u);
  EXPECT_EQ(colour.literals(), 2u * (29 + 29 + 3 * 3 * 24));

  const PatchShape flat = {28, 28, 1, 28, 28};
  EXPECT_TRUE(flat.is_flat());
  EXPECT_EQ(flat.position_bits(), 0u);
  EXPECT_EQ(flat.literals(), 1568u);

  const PatchShape wide = {5, 7, 1, 2, 7};  // as wide as the image: moves up and down only
  EXPECT_FALSE(wide.is_flat());
  EXPECT_EQ(wide.position_bits(), 3u);
}

// Two by three pixels of two planes, a patch of 1 x 2: every literal written out.
TEST(PatchLiterals, OrderByHand) {
  const PatchShape shape = {2, 3, 2, 1, 2};
  BitImages images(1, 2, 3, 2);
  // Row 1, pixels as (plane 0, plane 1): (1, 0) (0, 0) (1, 1).
  images.bits.set(1, 0, true);
  images.bits.set(1, 4, true);
  images.bits.set(1, 5, true);
  PatchLiterals patches(shape);
  patches.load(images, 0);
  uint64_t literals = 0;
  patches.patch(3, &literals);  // y = 1, x = 1: pixels (0, 0) (1, 1)
  // y > 0, x > 0, then 0 0 1 1, then the negations 0 0 1 1 0 0.
  EXPECT_EQ(literals, 0b001100'110011u);
  patches.patch(0, &literals);  // y = 0, x = 0: all zero
  EXPECT_EQ(literals, 0b111111'000000u);
  ASSERT_EQ(patches.blocks(), 1u);
  const auto bitmap = [&](size_t literal) { return patches.bitmaps()[literal * kBlockWords]; };
  EXPECT_EQ(bitmap(0), 0b1100u);      // y > 0 in patches 2 and 3
  EXPECT_EQ(bitmap(1), 0b1010u);      // x > 0 in patches 1 and 3
  EXPECT_EQ(bitmap(2), 0b0100u);      // first pixel, plane 0
  EXPECT_EQ(bitmap(3), 0b0000u);      // first pixel, plane 1
  EXPECT_EQ(bitmap(4), 0b1000u);      // second pixel, plane 0
  EXPECT_EQ(bitmap(6 + 0), 0b0011u);  // not y > 0
  EXPECT_EQ(bitmap(6 + 2), 0b1011u);
}

class PatchLiteralsTest : public testing::TestWithParam<PatchShape> {};

INSTANTIATE_TEST_SUITE_P(Shapes, PatchLiteralsTest,
                         testing::Values(PatchShape{28, 28, 1, 10, 10},  // 361 patches: one block
                                         PatchShape{28, 28, 1, 5, 5},    // 576: two
                                         PatchShape{32, 32, 24, 3, 3},   // many planes
                                         PatchShape{32, 32, 3, 10, 10},  //
                                         PatchShape{7, 5, 1, 3, 2},      // odd sizes
                                         PatchShape{11, 13, 1, 4, 7},    //
                                         PatchShape{9, 9, 1, 2, 2},      // 64 patches: one word
                                         PatchShape{6, 14, 1, 2, 2},     // 65: one bit more
                                         PatchShape{5, 70, 1, 2, 3},     // more than 64 columns
                                         PatchShape{3, 200, 1, 2, 5},    //
                                         PatchShape{3, 70, 2, 2, 3},     //
                                         PatchShape{3, 80, 1, 2, 70},    // a patch of more than 64 columns
                                         PatchShape{140, 3, 1, 2, 2},    // more than 64 rows
                                         PatchShape{8, 6, 1, 3, 6},      // as wide as the image
                                         PatchShape{8, 6, 3, 8, 2},      // as high
                                         PatchShape{6, 6, 1, 1, 1},      // single pixels
                                         PatchShape{6, 6, 5, 1, 1},      //
                                         PatchShape{2, 1, 1, 1, 1},      // the smallest that moves
                                         PatchShape{16, 32, 1, 1, 1}));  // 512: a full block

TEST_P(PatchLiteralsTest, BitmapsAndPatchesAreThoseOfTheDefinition) {
  const PatchShape shape = GetParam();
  RandomStream random = stream(1);
  const BitImages images = random_images(3, shape, random);
  PatchLiterals patches(shape);
  ASSERT_EQ(patches.blocks(), (shape.patches() + 511) / 512);
  std::vector<uint64_t> packed(words_for(shape.literals()));
  // One object for all images, the last one twice: nothing of an image stays behind.
  for (const size_t sample : {0u, 1u, 2u, 0u}) {
    patches.load(images, sample);
    const auto expected = naive_patches(images, sample, shape);
    size_t wrong_bitmaps = 0;
    for (size_t literal = 0; literal < shape.literals(); ++literal) {
      const uint64_t* bitmap = patches.bitmaps() + literal * patches.blocks() * kBlockWords;
      for (size_t p = 0; p < patches.blocks() * kBlockBits; ++p) {
        const bool holds = p < shape.patches() && expected[p][literal];  // the padding is zero
        wrong_bitmaps += get_bit(bitmap, p) != holds ? 1 : 0;
      }
    }
    EXPECT_EQ(wrong_bitmaps, 0u) << "sample " << sample;
    size_t wrong_patches = 0;
    for (size_t p = 0; p < shape.patches(); ++p) {
      std::fill(packed.begin(), packed.end(), ~uint64_t{0});
      patches.patch(p, packed.data());
      for (size_t bit = 0; bit < packed.size() * 64; ++bit) {
        const bool holds = bit < shape.literals() && expected[p][bit];
        wrong_patches += get_bit(packed.data(), bit) != holds ? 1 : 0;
      }
    }
    EXPECT_EQ(wrong_patches, 0u) << "sample " << sample;
  }
}

TEST_P(PatchLiteralsTest, EverywhereIsEveryPatchAndNothingElse) {
  const PatchShape shape = GetParam();
  const PatchLiterals patches(shape);
  for (size_t p = 0; p < patches.blocks() * kBlockBits; ++p) {
    ASSERT_EQ(get_bit(patches.everywhere(), p), p < shape.patches()) << "patch " << p;
  }
}

TEST(PatchLiterals, FlatIsTheWholeImageAndItsNegation) {
  for (const PatchShape& shape :
       {PatchShape{28, 28, 1, 28, 28}, PatchShape{1, 1, 100, 1, 1}, PatchShape{5, 7, 3, 5, 7},
        PatchShape{1, 64, 1, 1, 64}, PatchShape{1, 1, 1, 1, 1}}) {
    RandomStream random = stream(2);
    const BitImages images = random_images(2, shape, random);
    PatchLiterals patches(shape);
    EXPECT_EQ(patches.blocks(), 0u);
    patches.load(images, 1);
    std::vector<uint64_t> packed(words_for(shape.literals()), ~uint64_t{0});
    patches.patch(0, packed.data());
    const std::vector<bool> expected = naive_literals(images, 1, shape, 0, 0);
    ASSERT_EQ(expected.size(), shape.literals());
    for (size_t bit = 0; bit < packed.size() * 64; ++bit) {
      ASSERT_EQ(get_bit(packed.data(), bit), bit < shape.literals() && expected[bit]) << "literal " << bit;
    }
  }
}

TEST_P(PatchLiteralsTest, TheFillerHoldsEverywhere) {
  const PatchLiterals patches(GetParam());
  const size_t words = patches.blocks() * kBlockWords;
  const uint64_t* filler = patches.bitmaps() + patches.filler() * words;
  EXPECT_TRUE(std::equal(filler, filler + words, patches.everywhere()));
}

TEST_P(PatchLiteralsTest, PositionMaskIsTheAndOfThePositionLiterals) {
  const PatchShape shape = GetParam();
  const PatchLiterals patches(shape);
  const size_t words = patches.blocks() * kBlockWords;
  RandomStream random = stream(3);
  AlignedVector<uint64_t> mask(words);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<uint64_t> actions(words_for(shape.literals()));
    std::vector<uint64_t> expected(patches.everywhere(), patches.everywhere() + words);
    for (size_t literal = 0; literal < shape.literals(); ++literal) {
      if (random.below(10) != 0) continue;
      set_bit(actions.data(), literal);
      if (!shape.is_position(literal)) continue;
      for (size_t w = 0; w < words; ++w) expected[w] &= patches.bitmaps()[literal * words + w];
    }
    patches.position_mask(actions.data(), mask.data());
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), mask.begin())) << "trial " << trial;
  }
}

}  // namespace
}  // namespace bitfed
