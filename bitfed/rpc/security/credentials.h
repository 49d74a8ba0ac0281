#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "bitfed/rpc/security/trust.h"

namespace bitfed {

// Files that are replaced while the server runs are read again: certificates can be rotated.
std::shared_ptr<grpc::ServerCredentials> server_credentials(const ServerTrust& trust);
std::shared_ptr<grpc::ChannelCredentials> client_credentials(const ClientTrust& trust);

// The address, "HOST:PORT"; an input_error unless it is of this machine alone.
const std::string& require_loopback(const std::string& address);

// Checks certificates against the revocation list and the list of allowed clients. Reads the files again when
// they have changed; a changed file that cannot be read (one that is just being copied) leaves the last good
// lists in force and makes one complaint. Any thread may call.
class CertificateCheck {
 public:
  // An input_error where a file cannot be read now.
  explicit CertificateCheck(const ServerTrust& trust);
  ~CertificateCheck();

  struct Answer {
    Standing standing = Standing::kWelcome;
    std::string name;              // the common name; empty: the certificate has none
    std::string text;              // why it is not welcome
    std::optional<uint32_t> part;  // that the list of allowed clients reserves for this name
    int64_t seconds_left = 0;      // until the certificate expires
    bool is_operator = false;      // the list of allowed clients does not concern operators
  };
  Answer check(const std::string& certificate);
  // Those since the last call.
  std::vector<std::string> take_complaints();
  // Changes when the files do.
  std::string version() const;

 private:
  struct Lists;
  Lists read_lists() const;
  void refresh();

  ServerTrust trust_;
  std::mutex mutex_;
  std::vector<std::string> complaints_;
  std::string looked_at_;  // version() of the files when they were last read
  std::unique_ptr<Lists> lists_;
};

}  // namespace bitfed
