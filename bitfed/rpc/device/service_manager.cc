#include "bitfed/rpc/device/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace bitfed {

ServiceManager::ServiceManager() {
  address_ = std::getenv("NOTIFY_SOCKET");
  if (address_ == nullptr || (address_[0] != '/' && address_[0] != '@')) return;
  if (std::strlen(address_) >= sizeof(sockaddr_un::sun_path)) return;
  socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (const char* const interval = std::getenv("WATCHDOG_USEC")) {
    const long long microseconds = std::atoll(interval);
    if (microseconds > 0) watchdog_ = std::chrono::microseconds(microseconds);
  }
}

ServiceManager::~ServiceManager() {
  if (socket_ >= 0) ::close(socket_);
}

// A name that begins with '@' is in the abstract name space, where the first byte is 0.
void ServiceManager::send(const char* text) const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, address_, std::strlen(address_));
  if (address.sun_path[0] == '@') address.sun_path[0] = 0;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(address_));
  ::sendto(socket_, text, std::strlen(text), MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&address), size);
}

void ServiceManager::alive() {
  if (socket_ < 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (!last_) {
    send("READY=1");
  } else if (!watchdog_ || now - *last_ < *watchdog_ / 2) {
    return;
  } else {
    send("WATCHDOG=1");
  }
  last_ = now;
}

}  // namespace bitfed
