#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace bitfed {

class ThreadPool;

// The weighted mean of vectors of floats, added one at a time in any order, in memory for one. Sums are
// 128-bit integers, so that the order cannot change a bit. Values are rounded to multiples of 2^-64 (exact
// for floats of at least 2^-41) and must lie within ±2^22; the sum of the weights must not exceed 2^40. The
// mean of a single vector is that vector.
class ExactMean {
 public:
  static constexpr float kLargest = 4194304;
  __extension__ typedef __int128 Sum;

  // The first vector sets the size; values must satisfy fits(). An input_error where the sum of the weights
  // becomes too large, as it would if clients lied about their samples. `pool`: threads for long vectors;
  // null: the caller's alone.
  void add(std::span<const float> values, uint32_t weight, ThreadPool* pool = nullptr);

  // The same for several vectors, in parts: begin_add() once, then add_range() for ranges that make up the
  // whole, by any threads. A range passes through memory once for all vectors.
  struct Weighted {
    std::span<const float> values;
    uint32_t weight = 0;
  };
  void begin_add(std::span<const Weighted> vectors);
  void add_range(std::span<const Weighted> vectors, size_t begin, size_t end);
  static constexpr size_t kGrain = 1 << 15;  // elements that are worth a thread

  static bool fits(std::span<const float> values);  // finite, and within the range

  bool empty() const { return weight_ == 0; }
  uint64_t weight() const { return weight_; }
  std::vector<float> mean(ThreadPool* pool = nullptr) const;

  // The sums, 16 bytes each in little endian, for another process; and adding such sums, whose weights add up
  // to `weight`: the same as adding their vectors here. An input_error for what cannot be such sums.
  static constexpr size_t kSumBytes = 16;
  std::span<const uint8_t> sums() const;
  void add_sums(std::span<const uint8_t> sums, uint64_t weight);

 private:
  void add_weight(uint64_t weight);

  std::vector<Sum> sums_;
  uint64_t weight_ = 0;
};

// The nearest double, ties to even: the bits of the language's conversion in a fifth of its time.
double nearest_double(ExactMean::Sum sum);

}  // namespace bitfed
