#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "bitfed/base/byte_io.h"
#include "bitfed/rpc/security/trust.h"

namespace bitfed::v1 {
class FromClient;
class FromServer;
}  // namespace bitfed::v1

namespace bitfed {

// A client's stream to the server. One thread sends; messages are read in the background.
class Connection {
 public:
  virtual ~Connection() = default;  // ends it

  // False where the connection is gone.
  virtual bool send(const v1::FromClient& message) = 0;
  // The next message; null where none has come within the time, or the connection is gone.
  virtual std::unique_ptr<v1::FromServer> receive(std::chrono::milliseconds wait) = 0;
  // Whether work has come that receive() has not handed out yet.
  virtual bool has_newer_work() const = 0;
  // Set once the connection is gone and all its messages were received.
  struct End {
    std::string text;
    bool final = false;    // the client need not come back
    bool refused = false;  // the server said: not now
  };
  virtual std::optional<End> end() const = 0;
  // Reports to the server that the client is done, and waits up to five seconds for its answer.
  virtual void finish() = 0;
};

// Seconds until the client's certificate expires; none without TLS, or where the file cannot be read.
std::optional<int64_t> certificate_seconds_left(const ClientTrust& trust);

std::unique_ptr<Connection> open_connection(const std::string& server, const ClientTrust& trust);

}  // namespace bitfed
