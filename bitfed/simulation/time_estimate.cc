#include "bitfed/simulation/time_estimate.h"

#include <algorithm>

namespace bitfed {

void TimeEstimate::plan(const std::string& kind, double cost) {
  amounts_[kind].left += cost;
}

void TimeEstimate::skip(const std::string& kind, double cost) {
  Amount& amount = amounts_[kind];
  amount.left = std::max(0.0, amount.left - cost);
}

void TimeEstimate::finish(const std::string& kind, double cost, double seconds) {
  skip(kind, cost);
  amounts_[kind].done += cost;
  amounts_[kind].seconds += seconds;
}

std::optional<double> TimeEstimate::seconds_left() const {
  Amount all;
  for (const auto& [name, amount] : amounts_) {
    all.done += amount.done;
    all.seconds += amount.seconds;
  }
  if (all.done <= 0) return std::nullopt;
  double left = 0;
  for (const auto& [name, amount] : amounts_) {
    const Amount& measured = amount.done > 0 ? amount : all;
    left += amount.left * measured.seconds / measured.done;
  }
  return left;
}

}  // namespace bitfed
