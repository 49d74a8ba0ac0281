#include "bitfed/rpc/server/listener.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <memory>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

constexpr int kReservedFiles = 64;
constexpr int kBacklog = 1024;

// "127.0.0.1:4711" or "[::1]:4711"; an IPv4 address within IPv6 as IPv4. Empty: not a connected socket.
std::string peer_of(int handle) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getpeername(handle, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return fmt::format("{}:{}", text, ntohs(v4.sin_port));
  }
  if (address.ss_family != AF_INET6) return "";
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof text);
    return fmt::format("{}:{}", text, ntohs(v6.sin6_port));
  }
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  return fmt::format("[{}]:{}", text, ntohs(v6.sin6_port));
}

// gRPC's "ipv6:%5B::1%5D:4711" as "[::1]:4711".
std::string without_scheme(const std::string& peer) {
  std::string text = peer.substr(std::min(peer.size(), peer.find(':') + 1));
  for (const auto& [code, character] : {std::pair("%5B", "["), std::pair("%5D", "]")}) {
    if (const size_t at = text.find(code); at != std::string::npos) text.replace(at, 3, character);
  }
  return text;
}

int first_reserved_file() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur > INT32_MAX) return INT32_MAX;
  const int limit = static_cast<int>(files.rlim_cur);
  return std::max(limit - kReservedFiles, limit / 2);
}

struct Free {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

std::unique_ptr<addrinfo, Free> resolve(const std::string& listen) {
  const size_t colon = listen.rfind(':');
  uint16_t port = 0;
  const char* const end = listen.data() + listen.size();
  if (colon == std::string::npos) throw input_error("{}: expected HOST:PORT", listen);
  if (const auto [last, error] = std::from_chars(listen.data() + colon + 1, end, port);
      error != std::errc() || last != end) {
    throw input_error("{}: expected HOST:PORT, the port from 0 to 65535", listen);
  }
  std::string host = listen.substr(0, colon);
  if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code =
      getaddrinfo(host.empty() ? nullptr : host.c_str(), listen.c_str() + colon + 1, &hints, &found);
  if (code != 0) throw input_error("{}: cannot be listened on: {}", listen, gai_strerror(code));
  return std::unique_ptr<addrinfo, Free>(found);
}

void set_port(sockaddr* address, uint16_t port) {
  if (address->sa_family == AF_INET) reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(port);
  if (address->sa_family == AF_INET6) reinterpret_cast<sockaddr_in6*>(address)->sin6_port = htons(port);
}

uint16_t port_of(int handle) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(handle, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

}  // namespace

Listener::Listener(const std::string& listen, const ListenerOptions& options) : options_(options) {
  if (options_.first_reserved_file == 0) options_.first_reserved_file = first_reserved_file();
  options_.max_pending =
      std::min(options_.max_pending, static_cast<size_t>(std::max(options_.first_reserved_file / 2, 1)));
  try {
    bind_all(listen);
  } catch (...) {
    for (const int handle : listeners_) ::close(handle);
    throw;
  }
}

void Listener::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

Listener::~Listener() {
  stop();
  for (const int handle : listeners_) ::close(handle);
}

// All addresses of the name, at one port.
void Listener::bind_all(const std::string& listen) {
  const auto addresses = resolve(listen);
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    const int handle = ::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (handle < 0) continue;  // a family that this machine does not have
    listeners_.push_back(handle);
    const int on = 1;
    const int off = 0;
    setsockopt(handle, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->ai_family == AF_INET6) setsockopt(handle, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (port_ != 0) set_port(address->ai_addr, port_);
    if (::bind(handle, address->ai_addr, address->ai_addrlen) != 0 || ::listen(handle, kBacklog) != 0)
      throw input_error("{}: cannot be listened on: {}", listen, std::strerror(errno));
    port_ = port_of(handle);
  }
  if (listeners_.empty()) throw input_error("{}: cannot be listened on: {}", listen, std::strerror(errno));
}

void Listener::start(std::function<void(int)> hand_over) {
  hand_over_ = std::move(hand_over);
  thread_ = std::thread([this] { run(); });
}

void Listener::run() {
  std::vector<pollfd> waiting;
  for (const int listener : listeners_) waiting.push_back({listener, POLLIN, 0});
  while (!stopping_) {
    if (::poll(waiting.data(), waiting.size(), 100) <= 0) continue;
    for (const pollfd& one : waiting) {
      if (one.revents != 0) accept_from(one.fd);
    }
  }
}

void Listener::accept_from(int listener) {
  const int handle = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (handle < 0) {
    // Nothing that accept() reports concerns the listener itself. Where descriptors have run out the
    // connection waits in the backlog, and poll() would return at once.
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return;
  }
  // The lowest free number is given: so high a one means that nearly all are taken.
  if (handle >= options_.first_reserved_file) {
    ++turned_away_;
    ::close(handle);
    return;
  }
  remember(handle);
  hand_over_(handle);
}

void Listener::remember(int handle) {
  const std::lock_guard lock(mutex_);
  pending_.push_back({handle, peer_of(handle)});
  if (pending_.size() <= options_.max_pending) return;
  const Pending oldest = std::move(pending_.front());
  pending_.pop_front();
  // The number may stand for something else by now. Its owner closes it when it sees the end.
  if (oldest.peer.empty() || peer_of(oldest.handle) != oldest.peer) return;
  ++evicted_;
  ::shutdown(oldest.handle, SHUT_RDWR);
}

void Listener::authenticated(const std::string& peer) {
  const std::string address = without_scheme(peer);
  const std::lock_guard lock(mutex_);
  std::erase_if(pending_, [&](const Pending& one) { return one.peer == address; });
}

}  // namespace bitfed
