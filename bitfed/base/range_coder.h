#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "bitfed/base/byte_io.h"

namespace bitfed {

// An adaptive binary range coder (Martin 1979) in integer arithmetic: the same bytes on every platform. A
// message is a sequence of binary decisions; each costs -log2(p) bits, where p is the probability that its
// context had estimated. Encoder and decoder have the same interface, so that one function describes a
// message for both: the encoder's code() returns its argument, the decoder's ignores the argument and returns
// the decoded decision.

// A decision's context: the estimated probability of true, learned from earlier decisions. At first their
// plain mean, later an exponential moving average over about the last kMemory.
class AdaptiveBit {
 public:
  uint32_t probability() const { return probability_; }  // of true, in 1 / 65536; never 0 or 1

  void learn(bool decision) {
    const int32_t target = decision ? kMax : kMin;
    probability_ = static_cast<uint16_t>(probability_ + ((target - probability_) * kRates[seen_] >> 16));
    if (seen_ < kMemory - 1) ++seen_;
  }

 private:
  static constexpr int32_t kMin = 16;
  static constexpr int32_t kMax = 65536 - kMin;
  static constexpr size_t kMemory = 256;
  static constexpr std::array<int32_t, kMemory> kRates = [] {
    std::array<int32_t, kMemory> rates{};
    for (size_t seen = 0; seen < kMemory; ++seen) rates[seen] = static_cast<int32_t>(65536 / (seen + 2));
    return rates;
  }();

  uint16_t probability_ = 1 << 15;
  uint16_t seen_ = 0;
};

// Both sides narrow the interval [low, low + range): true takes its lower part. The encoder keeps low, the
// decoder the message's distance from low. When the range falls below this, the upper half of low is final:
// four bytes, the most significant first.
inline constexpr uint64_t kMinRange = uint64_t{1} << 32;

class RangeEncoder {
 public:
  static constexpr bool kReads = false;

  bool code(bool decision, AdaptiveBit& context) {
    narrow(decision, context.probability());
    context.learn(decision);
    return decision;
  }
  // A decision with probability 1/2: one bit.
  bool code(bool decision) {
    narrow(decision, 1u << 15);
    return decision;
  }

  // All of low is written, not just enough to identify the interval: no other bytes mean the same decisions.
  Bytes finish() {
    shift();
    shift();
    return std::move(bytes_);
  }

 private:
  void narrow(bool decision, uint64_t probability) {
    const uint64_t bound = (range_ >> 16) * probability;
    if (decision) {
      range_ = bound;
    } else {
      low_ += bound;
      range_ -= bound;
      if (low_ < bound) carry();
    }
    if (range_ < kMinRange) {
      range_ <<= 32;
      shift();
    }
  }
  void shift() {
    for (unsigned from = 64; from > 32;) bytes_.push_back(static_cast<uint8_t>(low_ >> (from -= 8)));
    low_ <<= 32;
  }
  // The carry never passes the first byte: all intervals lie in the first interval.
  void carry() {
    for (size_t i = bytes_.size(); ++bytes_[--i] == 0;) continue;
  }

  uint64_t low_ = 0;
  uint64_t range_ = UINT64_MAX;
  Bytes bytes_;
};

// Reads zeros beyond the end of the message; at_end() reports whether it did.
class RangeDecoder {
 public:
  static constexpr bool kReads = true;

  explicit RangeDecoder(std::span<const uint8_t> bytes) : bytes_(bytes) {
    shift();
    shift();
  }

  bool code(bool /*decision*/, AdaptiveBit& context) {
    const bool decision = narrow(context.probability());
    context.learn(decision);
    return decision;
  }
  bool code(bool /*decision*/) { return narrow(1u << 15); }

  // Whether the decisions read so far are the whole message as finish() ends it.
  bool at_end() const { return position_ == bytes_.size() && distance_ == 0; }

 private:
  bool narrow(uint64_t probability) {
    const uint64_t bound = (range_ >> 16) * probability;
    const bool decision = distance_ < bound;
    distance_ -= decision ? 0 : bound;
    range_ = decision ? bound : range_ - bound;
    if (range_ < kMinRange) {
      range_ <<= 32;
      shift();
    }
    return decision;
  }
  void shift() {
    for (const size_t end = position_ + 4; position_ < end; ++position_) {
      distance_ = distance_ << 8 | (position_ < bytes_.size() ? bytes_[position_] : 0u);
    }
  }

  std::span<const uint8_t> bytes_;
  size_t position_ = 0;
  uint64_t distance_ = 0;
  uint64_t range_ = UINT64_MAX;
};

}  // namespace bitfed
