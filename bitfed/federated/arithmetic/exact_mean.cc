#include "bitfed/federated/arithmetic/exact_mean.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

#include "bitfed/base/error.h"
#include "bitfed/base/pool_or_caller.h"

namespace bitfed {
namespace {

constexpr double kOne = 0x1p64;  // sums are in units of 2^-64
constexpr uint64_t kMaxWeight = uint64_t{1} << 40;
constexpr size_t kAtOnce = 1 << 11;  // sums that stay in the nearest cache while vectors are added

// A float, times a power of two, to the nearest integer, ties to even: as std::rint does, which is a call on
// x86. Its 24 bits are a whole number from 2^24 on; below, adding 1.5 * 2^52 leaves no place for a fraction.
double rounded(double x) {
  constexpr double kRounder = 0x1.8p52;
  return std::fabs(x) < 0x1p51 ? (x + kRounder) - kRounder : x;
}

// Whether all are below 1/2, and in sums' units fit a processor's own integers.
bool all_small(std::span<const float> values) {
  int32_t all = 1;
  for (const float value : values) all &= static_cast<int32_t>(std::fabs(value) < 0.5f);
  return all != 0;
}

}  // namespace

// Three parts are doubles without a loss; so is what the sum of two of them has lost, and that with the
// third.
double nearest_double(ExactMean::Sum sum) {
  constexpr ExactMean::Sum kLimit = ExactMean::Sum{1} << 104;
  if (sum >= kLimit || sum <= -kLimit) return static_cast<double>(sum);
  const auto below = static_cast<uint64_t>(sum);
  const double high = static_cast<double>(static_cast<int64_t>(sum >> 64)) * 0x1p64;
  const double middle = static_cast<double>(static_cast<int64_t>(below >> 32)) * 0x1p32;
  const auto low = static_cast<double>(static_cast<int64_t>(below & UINT32_MAX));
  const double upper = high + middle;
  return upper + ((middle - (upper - high)) + low);
}

bool ExactMean::fits(std::span<const float> values) {
  // Written so that NaN fails, too; without a way out and in a float's width, so that it takes vectors.
  int32_t all = 1;
  for (const float value : values) all &= static_cast<int32_t>(std::fabs(value) <= kLargest);
  return all != 0;
}

void ExactMean::add_weight(uint64_t weight) {
  if (weight > kMaxWeight || weight_ + weight > kMaxWeight)
    throw input_error("the clients' samples sum up to more than {}", kMaxWeight);
  weight_ += weight;
}

void ExactMean::add(std::span<const float> values, uint32_t weight, ThreadPool* pool) {
  const Weighted vector{values, weight};
  begin_add({&vector, 1});
  for_ranges(pool, values.size(), kGrain, [&](size_t begin, size_t end) {
    add_range({&vector, 1}, begin, end);
  });
}

void ExactMean::begin_add(std::span<const Weighted> vectors) {
  uint64_t weight = 0;
  for (const Weighted& vector : vectors) weight += vector.weight;
  add_weight(weight);
  if (sums_.empty()) sums_.resize(vectors[0].values.size());
}

// 2^22 * 2^64 * 2^40 = 2^126: no overflow.
void ExactMean::add_range(std::span<const Weighted> vectors, size_t begin, size_t end) {
  assert(end <= sums_.size());
  for (size_t first = begin; first < end; first += kAtOnce) {
    const size_t last = std::min(end, first + kAtOnce);
    for (const Weighted& vector : vectors) {
      assert(sums_.size() == vector.values.size());
      const auto times = static_cast<int64_t>(vector.weight);
      if (all_small(vector.values.subspan(first, last - first))) {
        for (size_t i = first; i < last; ++i) {
          const int64_t whole = std::llrint(static_cast<double>(vector.values[i]) * kOne);
          sums_[i] += std::fabs(whole) < 0x1p63 ? static_cast<Sum>(static_cast<int64_t>(whole)) * times
                                                : static_cast<Sum>(whole) * times;
        }
        continue;
      }
      for (size_t i = first; i < last; ++i) {
        const double whole = rounded(static_cast<double>(vector.values[i]) * kOne);
        sums_[i] += static_cast<Sum>(whole) * times;
      }
    }
  }
}

std::span<const uint8_t> ExactMean::sums() const {
  static_assert(std::endian::native == std::endian::little && sizeof(Sum) == kSumBytes);
  return {reinterpret_cast<const uint8_t*>(sums_.data()), sums_.size() * kSumBytes};
}

void ExactMean::add_sums(std::span<const uint8_t> sums, uint64_t weight) {
  const size_t count = sums.size() / kSumBytes;
  if (weight == 0 || sums.size() % kSumBytes != 0 || (!sums_.empty() && sums_.size() != count))
    throw input_error("sums of clients: found {} bytes of weight {}, expected {} and a weight above 0",
                      sums.size(), weight, sums_.size() * kSumBytes);
  add_weight(weight);
  const Sum largest = static_cast<Sum>(static_cast<double>(kLargest) * kOne) * static_cast<Sum>(weight);
  sums_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    Sum sum = 0;
    std::memcpy(&sum, sums.data() + i * kSumBytes, kSumBytes);
    // Of a damaged message: checked, so that no sum overflows.
    if (sum > largest || sum < -largest)
      throw input_error("sums of clients: found one beyond ±{} times its weight, {}", kLargest, weight);
    sums_[i] += sum;
  }
}

std::vector<float> ExactMean::mean(ThreadPool* pool) const {
  assert(weight_ > 0);
  std::vector<float> result(sums_.size());
  for_ranges(pool, sums_.size(), kGrain, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      result[i] = static_cast<float>(nearest_double(sums_[i]) / static_cast<double>(weight_) / kOne);
  });
  return result;
}

}  // namespace bitfed
