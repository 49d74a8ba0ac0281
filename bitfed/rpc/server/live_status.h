#pragma once

#include <chrono>
#include <deque>
#include <mutex>
#include <string>

#include "bitfed/run/events.h"
#include "bitfed/rpc/server/coordinator.h"

namespace bitfed {

// What a federation has been doing, gathered from its events for those who watch. Any thread may call.
class LiveStatus {
 public:
  void hear(const Event& event);

  // One object: name, method, rounds, round, phase, clients, curve, faults …; docs/formats.md.
  Event snapshot(const CoordinatorStatus& now) const;

 private:
  mutable std::mutex mutex_;
  Event about_ = Event::object();
  Event curve_ = Event::array();  // of the rounds: round, seconds, uploads, upload_bytes, accuracy
  std::deque<Event> faults_;      // the last ones
  std::string phase_ = "loading";
  uint64_t upload_bytes_ = 0;
  uint64_t download_bytes_ = 0;
  uint64_t lost_ = 0;
  std::chrono::steady_clock::time_point round_begin_;
};

// The snapshot in Prometheus' text format.
std::string prometheus_text(const Event& snapshot);

}  // namespace bitfed
