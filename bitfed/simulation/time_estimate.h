#pragma once

#include <map>
#include <optional>
#include <string>

namespace bitfed {

// How long work of several kinds will still take, from how long the finished pieces took. Costs are in any
// unit that is the same for all; a kind that was measured has a rate of its own, the others that of all.
class TimeEstimate {
 public:
  void plan(const std::string& kind, double cost);
  void finish(const std::string& kind, double cost, double seconds);
  void skip(const std::string& kind, double cost);  // planned, and found done: says nothing of the rate

  // Nothing where nothing was measured yet.
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
