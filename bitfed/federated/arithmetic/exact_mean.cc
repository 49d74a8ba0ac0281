#include "bitfed/federated/arithmetic/exact_mean.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "bitfed/base/error.h"
#include "bitfed/base/pool_or_caller.h"

namespace bitfed {
namespace {

constexpr double kOne = 0x1p64;  // sums are in units of 2^-64
constexpr uint64_t kMaxWeight = uint64_t{1} << 40;
constexpr size_t kGrain = 1 << 15;  // elements that are worth a thread

}  // namespace

bool ExactMean::fits(std::span<const float> values) {
  // Written so that NaN fails, too, and without a way out, so that it takes vectors.
  bool all = true;
  for (const float value : values) all &= std::fabs(value) <= kLargest;
  return all;
}

void ExactMean::add(std::span<const float> values, uint32_t weight, ThreadPool* pool) {
  if (weight_ + weight > kMaxWeight)
    throw input_error("the clients' samples sum up to more than {}", kMaxWeight);
  if (sums_.empty()) sums_.resize(values.size());
  assert(sums_.size() == values.size());
  // 2^22 * 2^64 * 2^40 = 2^126: no overflow. Most values are below 1/2, and then fit a processor's own
  // integers.
  for_ranges(pool, values.size(), kGrain, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const double whole = std::rint(static_cast<double>(values[i]) * kOne);
      const Sum sum =
          std::fabs(whole) < 0x1p63 ? static_cast<Sum>(static_cast<int64_t>(whole)) : static_cast<Sum>(whole);
      sums_[i] += sum * weight;
    }
  });
  weight_ += weight;
}

std::vector<float> ExactMean::mean(ThreadPool* pool) const {
  assert(weight_ > 0);
  std::vector<float> result(sums_.size());
  for_ranges(pool, sums_.size(), kGrain, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      result[i] = static_cast<float>(static_cast<double>(sums_[i]) / static_cast<double>(weight_) / kOne);
  });
  return result;
}

}  // namespace bitfed
