#pragma once

#include <algorithm>
#include <chrono>

namespace bitfed {

struct AllowanceOptions {
  double most = 200;    // messages at once
  double a_second = 5;  // that come back
};

// How much one client may still say.
class Allowance {
 public:
  using Time = std::chrono::steady_clock::time_point;

  Allowance(const AllowanceOptions& options, Time now) : options_(options), left_(options.most), at_(now) {}

  // For one message; false: there is nothing left of it.
  bool take(Time now) {
    left_ = left(now);
    at_ = now;
    if (left_ < 1) return false;
    left_ -= 1;
    return true;
  }
  // A message turned out to be of use.
  void give_back(Time now) {
    left_ = std::min(options_.most, left(now) + 1);
    at_ = now;
  }
  bool is_full(Time now) const { return left(now) >= options_.most; }

 private:
  double left(Time now) const {
    return std::min(options_.most,
                    left_ + std::chrono::duration<double>(now - at_).count() * options_.a_second);
  }

  AllowanceOptions options_;
  double left_;
  Time at_;
};

}  // namespace bitfed
