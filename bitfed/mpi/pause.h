#pragma once

#include <algorithm>
#include <chrono>

namespace bitfed {

// How long to sleep until a rank looks for messages again: MPI cannot wake a thread, and one that spins takes
// a core from those that train. About a fifth of the time that it has waited already, but no longer than
// `longest`.
class Pause {
 public:
  explicit Pause(std::chrono::microseconds longest = kOrdinary,
                 std::chrono::microseconds shortest = kShortest)
      : longest_(longest), shortest_(shortest) {}

  // A rank that trains nobody may look again at once: an answer comes within this time, or much later.
  bool is_short() const { return std::chrono::steady_clock::now() - begin_ < kShort; }

  std::chrono::microseconds next() {
    const auto pause = pause_;
    pause_ = std::min(pause_ * 5 / 4, longest_);
    return pause;
  }
  void reset() {
    pause_ = shortest_;
    begin_ = std::chrono::steady_clock::now();
  }

  static constexpr std::chrono::microseconds kOrdinary{1000};
  static constexpr std::chrono::microseconds kShortest{40};
  static constexpr std::chrono::microseconds kBesideTraining{
      250};  // the shortest: each look takes time from it

 private:
  static constexpr std::chrono::microseconds kShort{200};
  std::chrono::microseconds longest_;
  std::chrono::microseconds shortest_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::microseconds pause_ = shortest_;
};

// Lets the calling thread, which sends and receives, run as soon as its pause is over although threads that
// train hold the cores: exact timers, and short turns, which Linux 6.12 and later put before long ones. Where
// the system does not know this, nothing happens.
void run_promptly();

}  // namespace bitfed
