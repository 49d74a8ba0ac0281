#pragma once

#include <deque>
#include <mutex>
#include <string>

#include "bitfed/base/stopwatch.h"
#include "bitfed/rpc/server/coordinator.h"
#include "bitfed/run/events.h"
#include "bitfed/run/status.h"

namespace bitfed {

// Follows a federation's events and says where it stands. Any thread may call.
class LiveStatus {
 public:
  void receive(const Event& event);

  FederationStatus snapshot(const CoordinatorStatus& now) const;

 private:
  void on(const RunStarted& event);
  void on(const WaitingForClients& event);
  void on(const RoundStarted& event);
  void on(const RoundFinished& event);
  void on(const ClientFault& event);
  void on(const ClientLost& event);
  void on(const RunFinished& event);
  void on(const auto& /*any other event*/) {}

  mutable std::mutex mutex_;
  FederationStatus status_;  // what events tell; the rest comes from the coordinator
  std::deque<ClientFault> faults_;
  Stopwatch round_;
};

// Why the federation does not go on; empty: it does. It has waited for half an hour, or it is paused.
std::string not_ready(const FederationStatus& status);

// The status in Prometheus' text format.
std::string prometheus_text(const FederationStatus& status);

}  // namespace bitfed
