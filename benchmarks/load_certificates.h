#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "bitfed/rpc/security/certificates.h"
#include "bitfed/rpc/security/trust.h"

namespace bitfed {

// The certificate of device "load-NUMBER", made by the authority in `folder` unless it is there. The
// authority rewrites the list of what it has issued each time: a copy of it for every hundred devices keeps
// that short.
inline ClientTrust load_certificate(const std::filesystem::path& folder, uint32_t number) {
  namespace fs = std::filesystem;
  const std::string name = fmt::format("load-{}", number);
  const fs::path group = folder / fmt::format("load-{}", number / 100);
  const CertificatePaths paths(group);
  const ClientTrust trust{paths.ca, paths.clients / (name + ".pem"), paths.clients / (name + ".key"), false};
  if (fs::exists(trust.certificate)) return trust;
  fs::create_directories(group);
  for (const char* file : {"ca.pem", "ca.key", "revoked.pem"})
    fs::copy_file(folder / file, group / file, fs::copy_options::skip_existing);
  issue_client(group, name, 30);
  return trust;
}

}  // namespace bitfed
