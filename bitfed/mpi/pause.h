#pragma once

#include <algorithm>
#include <chrono>

namespace bitfed {

// How long to sleep until a rank looks for messages again: MPI cannot wake a thread, and one that spins takes
// a core from those that train. About a fifth of the time that it has waited already.
class Pause {
 public:
  std::chrono::microseconds next() {
    const auto pause = pause_;
    pause_ = std::min(pause_ * 5 / 4, kLongest);
    return pause;
  }
  void reset() { pause_ = kShortest; }

 private:
  static constexpr std::chrono::microseconds kShortest{40};
  static constexpr std::chrono::microseconds kLongest{1000};
  std::chrono::microseconds pause_ = kShortest;
};

}  // namespace bitfed
