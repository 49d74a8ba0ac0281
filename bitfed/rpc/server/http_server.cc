#include "bitfed/rpc/server/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <list>
#include <thread>
#include <vector>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxRequestBytes = 8192;
constexpr size_t kMaxConnections = 32;
constexpr auto kLongest = std::chrono::seconds(5);  // that a connection may take

class Socket {
 public:
  explicit Socket(int handle) : handle_(handle) {}
  Socket(Socket&& other) noexcept : handle_(std::exchange(other.handle_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  ~Socket() {
    if (handle_ >= 0) ::close(handle_);
  }
  int get() const { return handle_; }

 private:
  int handle_;
};

struct Exchange {
  explicit Exchange(int handle) : socket(handle) {}
  Socket socket;
  Clock::time_point begin = Clock::now();
  std::string request;
  std::string response;  // empty until the request is whole
  size_t sent = 0;
};

const char* reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 503:
      return "Service Unavailable";
    default:
      return "Internal Server Error";
  }
}

std::string render(const HttpResponse& response) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{}",
      response.status, reason(response.status), response.type, response.body.size(), response.body);
}

// A page of another site that resolves its own name to this address (DNS rebinding) names itself as the host:
// only addresses and localhost are accepted.
bool is_own_host(const std::string& request) {
  const size_t line_end = request.find("\r\n");
  for (size_t at = line_end; at != std::string::npos; at = request.find("\r\n", at)) {
    at += 2;
    if (strncasecmp(request.c_str() + at, "host:", 5) != 0) continue;
    std::string host = request.substr(at + 5, request.find("\r\n", at) - at - 5);
    std::erase(host, ' ');
    host = host.substr(0, host.front() == '[' ? host.find(']') + 1 : host.find(':'));
    in_addr address{};
    return host == "localhost" || host.starts_with('[') || inet_pton(AF_INET, host.c_str(), &address) == 1;
  }
  return true;  // HTTP/1.0, or a probe without one
}

sockaddr_in parse_address(const std::string& listen) {
  const size_t colon = listen.rfind(':');
  sockaddr_in address{};
  address.sin_family = AF_INET;
  uint16_t port = 0;
  const char* const end = listen.data() + listen.size();
  bool good = colon != std::string::npos &&
              inet_pton(AF_INET, listen.substr(0, colon).c_str(), &address.sin_addr) == 1;
  if (good) {
    const auto [last, code] = std::from_chars(listen.data() + colon + 1, end, port);
    good = code == std::errc() && last == end;
  }
  if (!good) throw input_error("{}: expected an address and a port, as in 127.0.0.1:9100", listen);
  address.sin_port = htons(port);
  return address;
}

class SocketServer : public HttpServer {
 public:
  SocketServer(const std::string& listen, std::function<HttpResponse(const std::string&)> answer)
      : answer_(std::move(answer)),
        listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in address = parse_address(listen);
    const int on = 1;
    setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    socklen_t size = sizeof address;
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_.get(), plain, size) != 0 || ::listen(listener_.get(), 16) != 0 ||
        getsockname(listener_.get(), plain, &size) != 0) {
      throw input_error("{}: cannot be listened on: {}", listen, std::strerror(errno));
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }

  ~SocketServer() override {
    stopping_ = true;
    thread_.join();
  }

  uint16_t port() const override { return port_; }

 private:
  void run() {
    while (!stopping_) {
      std::vector<pollfd> waiting = {{listener_.get(), POLLIN, 0}};
      for (const Exchange& exchange : exchanges_) {
        waiting.push_back(
            {exchange.socket.get(), static_cast<short>(exchange.response.empty() ? POLLIN : POLLOUT), 0});
      }
      ::poll(waiting.data(), waiting.size(), 100);
      size_t i = 1;
      for (auto exchange = exchanges_.begin(); exchange != exchanges_.end(); ++i) {
        const bool over =
            Clock::now() - exchange->begin > kLongest || (waiting[i].revents != 0 && !go_on(*exchange));
        exchange = over ? exchanges_.erase(exchange) : std::next(exchange);
      }
      if (waiting[0].revents != 0) accept_one();
    }
  }

  void accept_one() {
    const int handle = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (handle < 0) return;
    // A new request takes the place of the oldest one: silent connections do not keep probes out.
    if (exchanges_.size() >= kMaxConnections) exchanges_.pop_front();
    exchanges_.emplace_back(handle);
  }

  // False: this exchange is over.
  bool go_on(Exchange& exchange) {
    if (!exchange.response.empty()) return send_more(exchange);
    char bytes[2048];
    const ssize_t size = ::recv(exchange.socket.get(), bytes, sizeof bytes, 0);
    if (size <= 0) return size < 0 && (errno == EAGAIN || errno == EINTR);
    exchange.request.append(bytes, static_cast<size_t>(size));
    if (exchange.request.size() > kMaxRequestBytes) return false;
    if (exchange.request.find("\r\n\r\n") == std::string::npos) return true;
    exchange.response = render(respond(exchange.request));
    return send_more(exchange);
  }

  static bool send_more(Exchange& exchange) {
    const ssize_t size = ::send(exchange.socket.get(), exchange.response.data() + exchange.sent,
                                exchange.response.size() - exchange.sent, MSG_NOSIGNAL);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    exchange.sent += static_cast<size_t>(size);
    return exchange.sent < exchange.response.size();
  }

  HttpResponse respond(const std::string& request) const {
    const std::string line = request.substr(0, request.find("\r\n"));
    const size_t first = line.find(' ');
    const size_t second = line.find(' ', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      return {400, "text/plain", "bad request\n"};
    if (line.substr(0, first) != "GET") return {405, "text/plain", "GET alone\n"};
    if (!is_own_host(request)) return {403, "text/plain", "expected an address or localhost as the host\n"};
    try {
      return answer_(line.substr(first + 1, second - first - 1));
    } catch (const std::exception& error) {
      return {500, "text/plain", std::string(error.what()) + "\n"};
    }
  }

  std::function<HttpResponse(const std::string&)> answer_;
  Socket listener_;
  uint16_t port_ = 0;
  std::list<Exchange> exchanges_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<HttpServer> make_http_server(const std::string& listen,
                                             std::function<HttpResponse(const std::string&)> answer) {
  return std::make_unique<SocketServer>(listen, std::move(answer));
}

}  // namespace bitfed
