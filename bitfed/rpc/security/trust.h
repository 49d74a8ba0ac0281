#pragma once

#include <filesystem>
#include <string>

namespace bitfed {

// Whom a server believes. Without files it does not encrypt, which only loopback may do.
struct ServerTrust {
  std::filesystem::path certificate;
  std::filesystem::path key;
  std::filesystem::path client_ca;
  std::filesystem::path revoked;  // the CA's revocation list; empty: nobody is revoked
  std::filesystem::path allowed;  // a client's name a line; empty: everybody with a certificate
  bool plaintext = false;
};

// Whom a client believes.
struct ClientTrust {
  std::filesystem::path ca;
  std::filesystem::path certificate;
  std::filesystem::path key;
  bool plaintext = false;
};

}  // namespace bitfed
