#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "bitfed/rpc/security/trust.h"

namespace bitfed {

// Files that are replaced while the server runs are read again: certificates can be rotated.
std::shared_ptr<grpc::ServerCredentials> server_credentials(const ServerTrust& trust);
std::shared_ptr<grpc::ChannelCredentials> client_credentials(const ClientTrust& trust);

// An input_error unless "HOST:PORT" is of this machine alone.
void require_loopback(const std::string& address);

// Whether a certificate that TLS has found good is also welcome: not revoked, and on the list where there is
// one. Reads the files again when they have changed. Any thread may call.
class CertificateCheck {
 public:
  explicit CertificateCheck(const ServerTrust& trust);
  ~CertificateCheck();

  // The common name of a certificate (PEM); an input_error where it is not welcome.
  std::string name_of(const std::string& certificate);
  bool is_welcome(const std::string& certificate);
  // Changes when the files do.
  std::string version() const;

 private:
  struct Lists;
  void refresh();

  ServerTrust trust_;
  std::mutex mutex_;
  std::unique_ptr<Lists> lists_;
};

}  // namespace bitfed
