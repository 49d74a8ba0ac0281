#pragma once

#include <filesystem>
#include <string>

namespace bitfed {

// Whom a server believes. Without files it does not encrypt, which only loopback may do.
struct ServerTrust {
  std::filesystem::path certificate;
  std::filesystem::path key;
  std::filesystem::path client_ca;
  std::filesystem::path revoked;  // the CA's revocation list; empty: none is revoked
  // Per line a client's name and optionally the part reserved for it; empty: every client with a certificate.
  std::filesystem::path allowed;
  bool plaintext = false;
};

// Whether the server accepts a certificate that TLS has found good. Only kRevoked is final.
enum class Standing { kWelcome, kExpired, kNotListed, kRevoked };

// Whom a client believes.
struct ClientTrust {
  std::filesystem::path ca;
  std::filesystem::path certificate;
  std::filesystem::path key;
  bool plaintext = false;
};

}  // namespace bitfed
