#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace bitfed {

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

// Answers GET requests of monitoring tools and browsers, on a thread of its own: few connections, one request
// each, nothing that is slow or large is waited for. Not for the outside world.
class HttpServer {
 public:
  virtual ~HttpServer() = default;
  virtual uint16_t port() const = 0;
};

// `listen`: "ADDRESS:PORT", port 0 for any that is free.
std::unique_ptr<HttpServer> make_http_server(const std::string& listen,
                                             std::function<HttpResponse(const std::string& path)> answer);

}  // namespace bitfed
