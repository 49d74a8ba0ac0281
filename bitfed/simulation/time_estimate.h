#pragma once

#include <map>
#include <optional>
#include <string>

namespace bitfed {

// Estimates how long work of several kinds will still take, from the time that finished pieces took. Costs
// are in any common unit; a kind that was measured has its own rate, the others get the rate of all together.
class TimeEstimate {
 public:
  void plan(const std::string& kind, double cost);
  void finish(const std::string& kind, double cost, double seconds);
  void skip(const std::string& kind, double cost);  // planned, but done already: does not change the rate

  // Empty where nothing was measured yet.
  std::optional<double> seconds_left() const;

 private:
  struct Amount {
    double left = 0;
    double done = 0;
    double seconds = 0;
  };
  std::map<std::string, Amount> amounts_;
};

}  // namespace bitfed
