#pragma once

#include <algorithm>
#include <chrono>

namespace bitfed {

struct AllowanceOptions {
  double max = 200;       // messages at once
  double per_second = 5;  // that come back
};

// A token bucket: how many messages one client may still send.
class Allowance {
 public:
  using Time = std::chrono::steady_clock::time_point;

  Allowance(const AllowanceOptions& options, Time now) : options_(options), left_(options.max), at_(now) {}

  // Takes one message; false: none is left.
  bool take(Time now) {
    left_ = left(now);
    at_ = now;
    if (left_ < 1) return false;
    left_ -= 1;
    return true;
  }
  // Returns the message of an update that was accepted.
  void give_back(Time now) {
    left_ = std::min(options_.max, left(now) + 1);
    at_ = now;
  }
  bool is_full(Time now) const { return left(now) >= options_.max; }

 private:
  double left(Time now) const {
    return std::min(options_.max,
                    left_ + std::chrono::duration<double>(now - at_).count() * options_.per_second);
  }

  AllowanceOptions options_;
  double left_;
  Time at_;
};

}  // namespace bitfed
