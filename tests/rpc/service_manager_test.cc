#include "bitfed/rpc/device/service_manager.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

// What systemd would listen on.
class Manager {
 public:
  explicit Manager(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~Manager() { ::close(socket_); }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  std::string next() const {
    char bytes[100];
    const ssize_t size = ::recv(socket_, bytes, sizeof bytes, 0);
    return size < 0 ? "" : std::string(bytes, static_cast<size_t>(size));
  }

 private:
  int socket_;
};

TEST(ServiceManager, ReadyThenAlive) {
  TemporaryFolder folder;
  const std::string path = (folder / "notify").string();
  const Manager systemd(path);
  setenv("NOTIFY_SOCKET", path.c_str(), 1);
  setenv("WATCHDOG_USEC", "20000", 1);
  ServiceManager service;
  EXPECT_EQ(systemd.next(), "");
  service.alive();
  EXPECT_EQ(systemd.next(), "READY=1");
  service.alive();
  std::this_thread::sleep_for(std::chrono::milliseconds(11));
  service.alive();
  EXPECT_EQ(systemd.next(), "WATCHDOG=1");
  EXPECT_EQ(systemd.next(), "");

  unsetenv("WATCHDOG_USEC");
  ServiceManager unwatched;
  unwatched.alive();
  std::this_thread::sleep_for(std::chrono::milliseconds(11));
  unwatched.alive();
  EXPECT_EQ(systemd.next(), "READY=1");
  EXPECT_EQ(systemd.next(), "");

  unsetenv("NOTIFY_SOCKET");
  ServiceManager nowhere;
  nowhere.alive();
  EXPECT_EQ(systemd.next(), "");
}

}  // namespace
}  // namespace bitfed
