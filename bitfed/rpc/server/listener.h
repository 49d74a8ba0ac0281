#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace bitfed {

struct ListenerOptions {
  // Connections that have not authenticated yet. One more evicts the oldest of them.
  size_t max_pending = 1024;
  // File descriptors from this number on are for the rest of the process (database, log, page): connections
  // that would take one are closed at once. 0: 64 below the process's limit.
  int first_reserved_file = 0;
};

// Accepts TCP connections and hands their file descriptors over. gRPC's own listener stops accepting for good
// after the first failure of accept(), such as when file descriptors run out; this one goes on.
class Listener {
 public:
  // "HOST:PORT"; port 0 takes a free one. An input_error where it cannot be listened on.
  Listener(const std::string& listen, const ListenerOptions& options);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  uint16_t port() const { return port_; }
  // Begins to accept, on a thread of its own; `hand_over` owns the descriptor.
  void start(std::function<void(int)> hand_over);
  void stop();  // accepts no more
  // The connection from `peer` ("ipv4:127.0.0.1:4711", as gRPC writes it) has authenticated: it is not
  // evicted.
  void authenticated(const std::string& peer);

  uint64_t evicted() const { return evicted_; }          // to make room for newer ones
  uint64_t turned_away() const { return turned_away_; }  // for lack of file descriptors

 private:
  struct Pending {
    int handle;
    std::string peer;
  };

  void bind_all(const std::string& listen);
  void run();
  void accept_from(int listener);
  void remember(int handle);

  ListenerOptions options_;
  std::vector<int> listeners_;
  uint16_t port_ = 0;
  std::function<void(int)> hand_over_;
  std::mutex mutex_;
  std::deque<Pending> pending_;  // oldest first; some may have closed meanwhile
  std::atomic<uint64_t> evicted_ = 0;
  std::atomic<uint64_t> turned_away_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace bitfed
