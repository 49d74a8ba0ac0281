#pragma once

#include <cmath>

namespace bitfed {

// 1, 2 or 5 times a power of ten, so that about `count` steps span the range.
inline double nice_step(double span, double count) {
  const double raw = span / count;
  const double magnitude = std::pow(10, std::floor(std::log10(raw)));
  const double digit = raw / magnitude;
  return (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10) * magnitude;
}

}  // namespace bitfed
