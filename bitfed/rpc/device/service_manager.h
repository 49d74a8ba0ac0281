#pragma once

#include <chrono>
#include <optional>

namespace bitfed {

// Tells systemd that the service is up and still works (sd_notify(3), Type=notify, WatchdogSec=). Without
// NOTIFY_SOCKET in the environment it does nothing.
class ServiceManager {
 public:
  ServiceManager();
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // To be called wherever the program goes on, as often as it does; sends at most twice per watchdog
  // interval.
  void alive();

 private:
  void send(const char* text) const;

  int socket_ = -1;
  const char* address_ = nullptr;                      // in the environment
  std::optional<std::chrono::microseconds> watchdog_;  // the interval; none: not watched
  std::optional<std::chrono::steady_clock::time_point> last_;
};

}  // namespace bitfed
