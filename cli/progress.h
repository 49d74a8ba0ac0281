#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bitfed/run/events.h"

namespace bitfed::cli {

// The bars of runs under way, one below the other at the end of standard error, and lines above them. Where
// that is no terminal, every bar is a line. Any thread may call.
class Bars {
 public:
  Bars();
  ~Bars();
  Bars(const Bars&) = delete;
  Bars& operator=(const Bars&) = delete;

  bool on_terminal() const { return terminal_; }
  void draw(const void* run, const std::string& bar);
  void remove(const void* run);
  void line(const std::string& text);

 private:
  void erase();
  void show();

  std::mutex mutex_;
  bool terminal_;
  std::vector<std::pair<const void*, std::string>> bars_;
  size_t shown_ = 0;
};

struct ProgressOptions {
  bool quiet = false;
  // For a run that is one of many: the label before the bar, and the text for the time left when the fraction
  // `done` of the run is done, of which `at_hand` needed no training. Such runs do not report single clients.
  std::string label = {};
  std::function<std::string(double done, double at_hand)> time_left = {};
  Bars* bars = nullptr;  // where other runs show theirs; null: there is no other run
};

// "12 s", "3:05 min", "2:30 h".
std::string short_duration(double seconds);

// Shows a run's events on standard error: a bar on a terminal, a line every few seconds elsewhere.
class Progress {
 public:
  explicit Progress(ProgressOptions options);
  ~Progress();

  void show(const Event& event);

 private:
  void on(const Loading& event);
  void on(const RunStarted& event);
  void on(const RoundStarted& event);
  void on(const ClientProgress& event);
  void on(const ClientFinished& event);
  void on(const ClientLost& event);
  void on(const RoundFinished& event);
  void on(const Warning& event);
  void on(const auto& /*any other event*/) {}

  void draw();
  void line(const std::string& text) { bars_.line(text); }
  std::string bar() const;
  std::string time_left() const;
  double fraction_of_round() const;
  double rounds_done() const;
  bool is_one_of_many() const { return options_.time_left != nullptr; }

  ProgressOptions options_;
  Bars own_bars_;
  Bars& bars_;
  std::chrono::steady_clock::time_point start_;  // of the first round
  std::chrono::steady_clock::time_point last_drawn_;
  uint64_t rounds_ = 1;
  std::optional<uint64_t> round_;
  size_t clients_in_round_ = 0;
  size_t finished_ = 0;
  double at_hand_ = 0;  // rounds that were not trained in this process: not counted for the speed
  std::map<uint64_t, double> running_;  // client -> fraction done
};

}  // namespace bitfed::cli
