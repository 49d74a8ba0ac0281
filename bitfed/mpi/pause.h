#pragma once

#include <algorithm>
#include <chrono>

namespace bitfed {

// How long to sleep until a rank looks for messages again: MPI cannot wake a thread, and one that spins takes
// a core from those that train. About a fifth of the time that it has waited already, but no longer than
// `longest`.
class Pause {
 public:
  explicit Pause(std::chrono::microseconds longest = kOrdinary) : longest_(longest) {}

  std::chrono::microseconds next() {
    const auto pause = pause_;
    pause_ = std::min(pause_ * 5 / 4, longest_);
    return pause;
  }
  void reset() { pause_ = kShortest; }

  static constexpr std::chrono::microseconds kOrdinary{1000};

 private:
  static constexpr std::chrono::microseconds kShortest{40};
  std::chrono::microseconds longest_;
  std::chrono::microseconds pause_ = kShortest;
};

// Lets the calling thread, which sends and receives, run as soon as its pause is over although threads that
// train hold the cores: exact timers, and short turns, which Linux 6.12 and later put before long ones. Where
// the system does not know this, nothing happens.
void run_promptly();

}  // namespace bitfed
