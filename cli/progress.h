#pragma once

#include <chrono>
#include <map>
#include <string>

#include "bitfed/federated/events.h"

namespace bitfed::cli {

// Shows a run's events on standard error: a bar on a terminal, a line every few seconds elsewhere.
class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();

  void show(const Event& event);

 private:
  void draw(bool always);
  void line(const std::string& text);
  std::string bar() const;
  double fraction() const;

  bool quiet_;
  bool terminal_;
  bool bar_shown_ = false;
  std::chrono::steady_clock::time_point round_start_;
  std::chrono::steady_clock::time_point last_drawn_;
  uint64_t rounds_ = 1;
  uint64_t round_ = 0;
  size_t clients_in_round_ = 0;
  size_t finished_ = 0;
  size_t at_hand_ = 0;                  // of those, not trained just now: they say nothing of the speed
  std::map<uint64_t, double> running_;  // client -> fraction done
};

}  // namespace bitfed::cli
