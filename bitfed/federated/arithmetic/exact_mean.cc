#include "bitfed/federated/arithmetic/exact_mean.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

constexpr double kOne = 0x1p64;  // sums are in units of 2^-64
constexpr uint64_t kMaxWeight = uint64_t{1} << 40;

}  // namespace

bool ExactMean::fits(std::span<const float> values) {
  // Written so that NaN fails, too.
  return std::all_of(values.begin(), values.end(), [](float value) { return std::fabs(value) <= kLargest; });
}

void ExactMean::add(std::span<const float> values, uint32_t weight) {
  if (weight_ + weight > kMaxWeight)
    throw input_error("the clients' samples sum up to more than {}", kMaxWeight);
  if (sums_.empty()) sums_.resize(values.size());
  assert(sums_.size() == values.size());
  // 2^22 * 2^64 * 2^40 = 2^126: no overflow. Most values are below 1/2, and then fit a processor's own
  // integers.
  for (size_t i = 0; i < values.size(); ++i) {
    const double whole = std::rint(static_cast<double>(values[i]) * kOne);
    const Sum sum =
        std::fabs(whole) < 0x1p63 ? static_cast<Sum>(static_cast<int64_t>(whole)) : static_cast<Sum>(whole);
    sums_[i] += sum * weight;
  }
  weight_ += weight;
}

std::vector<float> ExactMean::mean() const {
  assert(weight_ > 0);
  std::vector<float> result;
  result.reserve(sums_.size());
  for (const Sum sum : sums_)
    result.push_back(static_cast<float>(static_cast<double>(sum) / static_cast<double>(weight_) / kOne));
  return result;
}

}  // namespace bitfed
