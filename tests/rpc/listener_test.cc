#include "bitfed/rpc/server/listener.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>

#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

// The listener's other side: keeps what is handed over.
class ListenerTest : public testing::Test {
 protected:
  ~ListenerTest() override {
    listener_.reset();
    for (const int handle : taken_) close(handle);
    for (const int handle : clients_) close(handle);
  }

  void start(const ListenerOptions& options) {
    listener_ = std::make_unique<Listener>("127.0.0.1:0", options);
    listener_->start([this](int handle) {
      const std::lock_guard lock(mutex_);
      taken_.push_back(handle);
      wake_.notify_all();
    });
  }
  int connect_one() {
    const int handle = socket(AF_INET, SOCK_STREAM, 0);
    connect_with(handle);
    return handle;
  }
  void connect_with(int handle) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(listener_->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(handle, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    clients_.push_back(handle);
  }
  void wait_for(size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(wake_.wait_for(lock, std::chrono::seconds(20), [&] { return taken_.size() >= count; }));
  }
  static bool was_closed(int client) {
    char byte = 0;
    return recv(client, &byte, 1, 0) <= 0;
  }
  static std::string name_of(int client) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    getsockname(client, reinterpret_cast<sockaddr*>(&address), &size);
    return "ipv4:127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }

  std::unique_ptr<Listener> listener_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<int> taken_;
  std::vector<int> clients_;
};

// gRPC 1.51 never accepts again once accept() has failed for lack of descriptors.
TEST_F(ListenerTest, OutOfDescriptorsItGoesOn) {
  start({});
  connect_one();
  wait_for(1);
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(client) + 1;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  connect_with(client);  // waits in the backlog
  usleep(200000);        // while accept() fails
  {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(taken_.size(), 1u);
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  wait_for(2);
}

TEST_F(ListenerTest, KeepsAReserveOfDescriptors) {
  const int next = dup(0);
  close(next);
  // Room for about ten pairs of client and server.
  start({.max_pending = 1024, .first_reserved_file = next + 20});
  for (int i = 0; i < 30; ++i) connect_one();
  EXPECT_TRUE(was_closed(clients_.back()));
  EXPECT_GT(listener_->turned_away(), 0u);
  for (const int handle : std::exchange(clients_, {})) close(handle);
  {
    const std::lock_guard lock(mutex_);
    for (const int handle : std::exchange(taken_, {})) close(handle);
  }
  connect_one();
  wait_for(1);
}

TEST_F(ListenerTest, EvictsTheOldestThatHasNotAuthenticated) {
  start({.max_pending = 3, .first_reserved_file = 0});
  const int good = connect_one();
  wait_for(1);
  listener_->authenticated(name_of(good));
  for (size_t i = 0; i < 5; ++i) {
    connect_one();
    wait_for(i + 2);
  }
  EXPECT_TRUE(was_closed(clients_[1]));
  EXPECT_TRUE(was_closed(clients_[2]));
  EXPECT_EQ(listener_->evicted(), 2u);
  char byte = 0;
  EXPECT_EQ(recv(good, &byte, 1, MSG_DONTWAIT), -1);  // still open
  EXPECT_EQ(recv(clients_[3], &byte, 1, MSG_DONTWAIT), -1);
}

TEST(Listener, Addresses) {
  for (const char* listen : {"nowhere", "127.0.0.1:", "127.0.0.1:99999", "127.0.0.1:x"})
    EXPECT_FALSE(error_text([&] { Listener(listen, {}); }).empty()) << listen;
  const Listener first("127.0.0.1:0", {});
  EXPECT_THAT(error_text([&] { Listener("127.0.0.1:" + std::to_string(first.port()), {}); }),
              HasSubstr("cannot be listened on"));
  EXPECT_GT(Listener("localhost:0", {}).port(), 0);
}

}  // namespace
}  // namespace bitfed
