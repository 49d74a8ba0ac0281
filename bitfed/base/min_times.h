#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace bitfed {

// The minimum time of each step of some work over kRepetitions repetitions. The minimum is the best estimate,
// since everything else that the machine does only adds time.
class MinTimes {
 public:
  static constexpr int kRepetitions = 50;

  void begin() { begin_ = Clock::now(); }
  // A step ends here, and the next one begins.
  void finished(size_t step) {
    const Clock::time_point end = Clock::now();
    if (step >= seconds_.size()) seconds_.resize(step + 1, 1e9);
    seconds_[step] = std::min(seconds_[step], std::chrono::duration<double>(end - begin_).count());
    begin_ = Clock::now();
  }
  const std::vector<double>& seconds() const { return seconds_; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_;
  std::vector<double> seconds_;
};

}  // namespace bitfed
