#include <gtest/gtest.h>

#include "bitfed/base/hash/random.h"
#include "bitfed/nn/kernels/matrix.h"

namespace bitfed {
namespace {

TEST(DrawKernelsTest, DrawsAreThoseOfTheStream) {
  const RandomStream parent({.seed = 7, .purpose = "test"});
  for (const uint64_t lane : {0, 1, 12345}) {
    for (const uint64_t first : {uint64_t{0}, uint64_t{1}, uint64_t{UINT32_MAX} - 3}) {
      const RandomStream::Blocks from = parent.substream(lane).blocks();
      ASSERT_EQ(from.position, 0u);
      const RandomBlocks blocks{{from.key[0], from.key[1]}, from.lane, first};
      for (const size_t count : {0, 1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 100}) {
        for (const NeuralKernels* table : supported_neural_kernels()) {
          std::vector<uint32_t> draws(4 * count + 1, 5);
          table->draw(blocks, count, draws.data());
          EXPECT_EQ(draws.back(), 5u);  // no more than asked for
          for (size_t i = 0; i < 4 * count; ++i) {
            const uint64_t position = first + i / 4;
            const auto block =
                philox4x32({static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32),
                            static_cast<uint32_t>(from.lane), static_cast<uint32_t>(from.lane >> 32)},
                           from.key);
            ASSERT_EQ(draws[i], block[i % 4]) << table->name << " " << count << " " << i;
          }
        }
      }
    }
  }
}

TEST(DrawKernelsTest, DrawsBelowTheBoundDrop) {
  constexpr size_t kCount = 3 * kLanes;
  Floats x(kCount);
  std::vector<uint32_t> draws(kCount);
  RandomStream random({.purpose = "drop"});
  for (const uint32_t bound : {0u, 1u, 0x7fffffffu, 0x80000000u, 0x80000001u, UINT32_MAX}) {
    for (size_t i = 0; i < kCount; ++i) {
      x[i] = static_cast<float>(random.normal());
      draws[i] = i % 2 == 0 ? random.next_u32() : bound + static_cast<uint32_t>(i % 3) - 1;
    }
    for (const NeuralKernels* table : supported_neural_kernels()) {
      Floats mask(kCount), out(kCount);
      table->drop({draws.data(), bound, 1.25f, x.data(), kCount, mask.data(), out.data()});
      for (size_t i = 0; i < kCount; ++i) {
        EXPECT_EQ(mask[i], draws[i] < bound ? 0 : 1.25f) << table->name << " " << bound << " " << draws[i];
        EXPECT_EQ(out[i], x[i] * mask[i]) << table->name;
      }
    }
  }
}

}  // namespace
}  // namespace bitfed
