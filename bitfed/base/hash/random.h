#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace bitfed {

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11): a block cipher
// used as a random function of (key, counter).
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// What a random draw is for. Streams with different keys are independent.
struct StreamKey {
  uint64_t seed = 0;
  std::string_view purpose;
  uint64_t round = 0;
  uint64_t client = 0;
};

// A counter-based stream of random numbers: its n-th draw depends on the key and n alone, so threads,
// arrival order and transport cannot change it. Copying a stream copies its position.
class RandomStream {
 public:
  explicit RandomStream(const StreamKey& key);

  // Independent stream number `index`; the same whatever this stream's position.
  RandomStream substream(uint64_t index) const;

  // What the draws are made of: draw n of a stream that has drawn nothing is word n % 4 of
  // philox4x32({position + n / 4, lane}, key), for who draws many at once.
  struct Blocks {
    std::array<uint32_t, 2> key;
    uint64_t lane;
    uint64_t position;
  };
  Blocks blocks() const { return {key_, lane_, position_}; }

  uint32_t next_u32();
  uint64_t next_u64();
  uint32_t below(uint32_t bound);  // uniform in [0, bound), unbiased; bound > 0
  double uniform();                // uniform in [0, 1) with 53 bits
  double normal();                 // mean 0, variance 1
  double gamma(double shape);      // scale 1; shape > 0

  template <typename T>
  void shuffle(std::span<T> items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(static_cast<uint32_t>(i))]);
  }

 private:
  RandomStream(std::array<uint32_t, 2> key, uint64_t lane) : key_(key), lane_(lane) {}
  std::array<uint32_t, 4> counter(uint64_t position) const;

  std::array<uint32_t, 2> key_;
  uint64_t lane_ = 0;      // upper half of the counter: which substream
  uint64_t position_ = 0;  // lower half of the counter: which block
  std::array<uint32_t, 4> block_{};
  unsigned used_ = 4;  // words of block_ already returned
};

}  // namespace bitfed
