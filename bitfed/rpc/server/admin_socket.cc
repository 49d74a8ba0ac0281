#include "bitfed/rpc/server/admin_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxLine = 4096;
constexpr std::string_view kError = "error: ";

sockaddr_un address_of(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = path.string();
  if (text.size() >= sizeof address.sun_path) {
    throw input_error("{}: found a path of {} bytes, expected at most {}: a Unix socket takes no more", text,
                      text.size(), sizeof address.sun_path - 1);
  }
  std::memcpy(address.sun_path, text.c_str(), text.size());
  return address;
}

struct Handle {
  explicit Handle(int opened) : number(opened) {}
  ~Handle() {
    if (number >= 0) ::close(number);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  int number;
};

// To the end of the stream, or to the first newline.
std::string read_all(int handle, bool line, size_t max) {
  std::string text;
  char bytes[4096];
  while (text.size() < max) {
    const ssize_t size = ::recv(handle, bytes, sizeof bytes, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    text.append(bytes, static_cast<size_t>(size));
    if (const size_t end = text.find('\n'); line && end != std::string::npos) return text.substr(0, end);
  }
  return text;
}

void write_all(int handle, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::send(handle, text.data(), text.size(), MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;
    text.remove_prefix(static_cast<size_t>(size));
  }
}

class Socket : public AdminSocket {
 public:
  Socket(const fs::path& path, std::function<std::string(const std::string&, unsigned)> answer)
      : path_(path), answer_(std::move(answer)), listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = address_of(path);
    std::error_code code;
    fs::remove(path, code);  // of a server that was killed: this folder is ours alone
    const mode_t before = umask(0177);
    const bool good = ::bind(listener_.number, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                      ::listen(listener_.number, 4) == 0;
    umask(before);
    if (!good) throw input_error("{}: cannot be listened on: {}", path.string(), std::strerror(errno));
    thread_ = std::thread([this] { run(); });
  }

  ~Socket() override {
    stopping_ = true;
    thread_.join();
    std::error_code code;
    fs::remove(path_, code);
  }

 private:
  void run() {
    while (!stopping_) {
      pollfd waiting{listener_.number, POLLIN, 0};
      if (::poll(&waiting, 1, 100) <= 0) continue;
      const Handle connection(::accept4(listener_.number, nullptr, nullptr, SOCK_CLOEXEC));
      if (connection.number >= 0) serve(connection.number);
    }
  }

  void serve(int handle) {
    const timeval patience{5, 0};
    setsockopt(handle, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(handle, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    ucred user{};
    socklen_t size = sizeof user;
    getsockopt(handle, SOL_SOCKET, SO_PEERCRED, &user, &size);
    const std::string line = read_all(handle, true, kMaxLine);
    std::string text;
    try {
      text = answer_(line, user.uid);
    } catch (const std::exception& error) {
      text = std::string(kError) + error.what() + "\n";
    }
    write_all(handle, text);
  }

  fs::path path_;
  std::function<std::string(const std::string&, unsigned)> answer_;
  Handle listener_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<AdminSocket> make_admin_socket(
    const fs::path& path, std::function<std::string(const std::string& line, unsigned user)> answer) {
  return std::make_unique<Socket>(path, std::move(answer));
}

std::string ask_admin(const fs::path& path, const std::string& line) {
  sockaddr_un address = address_of(path);
  const Handle handle(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(handle.number, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw input_error("{}: no server answers here: {}", path.string(), std::strerror(errno));
  write_all(handle.number, line + "\n");
  std::string text = read_all(handle.number, false, SIZE_MAX);
  if (text.starts_with(kError)) {
    text.erase(0, kError.size());
    if (!text.empty() && text.back() == '\n') text.pop_back();
    throw input_error("{}", text);
  }
  return text;
}

}  // namespace bitfed
