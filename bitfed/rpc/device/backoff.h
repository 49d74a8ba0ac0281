#pragma once

#include <algorithm>
#include <cmath>

namespace bitfed {

// How long a client waits before its next attempt: at random between `min` and `max` seconds, so that the
// clients of a server that fell do not come back together.
struct Pause {
  double min = 0;
  double max = 0;
};

// Doubled with every failure in a row: up to 20 s where the server cannot be reached, up to five minutes
// where it refuses the client for now.
inline Pause pause_after(int failures, bool refused) {
  const double longest = refused ? 300 : 20;
  const double max = std::min(longest, 0.25 * std::exp2(std::min(failures, 20)));
  return {0.2 * max, max};
}

}  // namespace bitfed
