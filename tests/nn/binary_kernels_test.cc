#include "bitfed/nn/kernels/binary_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "bitfed/base/hash/random.h"
#include "bitfed/bits/bit_matrix.h"

namespace bitfed {
namespace {

class BinaryKernelsTest : public testing::TestWithParam<const BinaryKernels*> {};

// A convolution by its definition: +1 and -1 multiplied and added, nothing beyond the image.
TEST_P(BinaryKernelsTest, SumsOfProductsOfSigns) {
  RandomStream random({3, "binary kernels"});
  for (const size_t words : {1, 2, 12}) {  // a word a pixel and several; 36 go beyond a run of bytes
    for (const size_t filters : {16, 32, 64, 80}) {  // whole tiles and the rest
      constexpr size_t kQuads = 3;
      const size_t segment_words = 3 * words;
      const size_t step = segment_words + 5;
      std::vector<uint32_t> image(3 * step + 40);
      for (uint32_t& word : image) word = random.next_u32();
      std::vector<uint32_t> weights(9 * words * filters);
      for (uint32_t& word : weights) word = random.next_u32();
      std::vector<uint32_t> offsets;
      std::vector<uint8_t> cases;
      for (size_t i = 0; i < 4 * kQuads; ++i) {
        offsets.push_back(random.below(20));
        cases.push_back(static_cast<uint8_t>(random.below(2)));
      }
      std::vector<int32_t> bases;
      for (size_t i = 0; i < 2 * filters; ++i) bases.push_back(static_cast<int32_t>(random.below(600)));
      std::vector<float> factor(filters);
      std::vector<float> offset(filters);
      for (size_t i = 0; i < filters; ++i) {
        factor[i] = static_cast<float>(0.01 * random.uniform());
        offset[i] = static_cast<float>(random.normal());
      }
      std::vector<float> out(kQuads * filters);
      const SignPatches patches{image.data(), offsets.data(), cases.data(),   kQuads,  3,
                                step,         segment_words,  weights.data(), filters, bases.data()};
      GetParam()->sign_pools(patches, {factor.data(), offset.data(), out.data()});
      std::vector<float> sums(4 * kQuads * filters);
      GetParam()->sign_sums(patches, sums.data());
      std::vector<float> shortcut;
      for (size_t i = 0; i < sums.size(); ++i) shortcut.push_back(static_cast<float>(random.normal()));
      std::vector<float> normed(sums.size());
      GetParam()->sign_norms(patches, {factor.data(), offset.data(), nullptr, false, normed.data()});
      std::vector<float> block = shortcut;
      GetParam()->sign_norms(patches, {factor.data(), offset.data(), block.data(), true, block.data()});
      std::vector<int32_t> min_sums;
      for (size_t i = 0; i < filters; ++i) min_sums.push_back(static_cast<int32_t>(random.below(600)) - 300);
      const size_t row = (filters + 31) / 32 + 1;
      std::vector<uint32_t> next_offsets;
      for (size_t i = 0; i < 4 * kQuads; ++i) next_offsets.push_back(static_cast<uint32_t>(i * row));
      std::vector<uint32_t> pixel_bits(4 * kQuads * row);
      std::vector<uint32_t> pool_bits(4 * kQuads * row);
      GetParam()->sign_thresholds(patches, {min_sums.data(), false, next_offsets.data(), pixel_bits.data()});
      GetParam()->sign_thresholds(patches, {min_sums.data(), true, next_offsets.data(), pool_bits.data()});
      const auto bit = [&](const std::vector<uint32_t>& bits, size_t at, size_t filter) {
        return (bits[at * row + filter / 32] >> (filter % 32) & 1) != 0;
      };
      for (size_t quad = 0; quad < kQuads; ++quad) {
        for (size_t filter = 0; filter < filters; ++filter) {
          int32_t largest = INT32_MIN;
          for (size_t corner = 4 * quad; corner < 4 * quad + 4; ++corner) {
            int32_t differing = 0;
            for (size_t word = 0; word < 9 * words; ++word) {
              const uint32_t a = image[offsets[corner] + word / segment_words * step + word % segment_words];
              for (uint32_t x = a ^ weights[word * filters + filter]; x != 0; x &= x - 1) ++differing;
            }
            const int32_t sum = bases[cases[corner] * filters + filter] - 2 * differing;
            const size_t at = corner * filters + filter;
            ASSERT_EQ(sums[at], static_cast<float>(sum));
            ASSERT_EQ(bit(pixel_bits, corner, filter), sum >= min_sums[filter]);
            const float product = static_cast<float>(sum) * factor[filter];
            const float norm = product + offset[filter];
            ASSERT_EQ(normed[at], norm);
            ASSERT_EQ(block[at], std::clamp(norm + shortcut[at], -1.0f, 1.0f));
            largest = std::max(largest, sum);
          }
          ASSERT_EQ(bit(pool_bits, quad, filter), largest >= min_sums[filter]);
          const float product = static_cast<float>(largest) * factor[filter];
          const float sum = product + offset[filter];
          ASSERT_EQ(out[quad * filters + filter], std::min(1.0f, std::max(-1.0f, sum)));
        }
      }
    }
  }
}

TEST_P(BinaryKernelsTest, SignsAboutAMean) {
  RandomStream random({4, "binary kernels"});
  for (const size_t channels : {16, 32, 48, 128}) {
    constexpr size_t kPixels = 7;
    std::vector<float> values;
    for (size_t i = 0; i < kPixels * channels; ++i) values.push_back(static_cast<float>(random.normal()));
    const size_t words = (channels + 31) / 32;
    std::vector<uint32_t> signs(kPixels * words + 1, 0xabcdef01u);
    const float mean = values[5];  // equal to one: at or above
    GetParam()->signs_about(values.data(), kPixels, channels, mean, signs.data());
    for (size_t i = 0; i < kPixels * words * 32; ++i) {
      const size_t c = i % (32 * words);
      const bool expected = c < channels && values[i / (32 * words) * channels + c] >= mean;
      ASSERT_EQ(signs[i / 32] >> (i % 32) & 1, expected ? 1u : 0u) << channels << " " << i;
    }
    EXPECT_EQ(signs.back(), 0xabcdef01u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, BinaryKernelsTest, testing::ValuesIn(supported_binary_kernels()),
                         [](const auto& entry) { return std::string(entry.param->name); });

}  // namespace
}  // namespace bitfed
