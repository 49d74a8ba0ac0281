#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace bitfed {

// A private certificate authority in a folder, for one federation: ECDSA on P-256 with SHA-256. Files:
// ca.pem, ca.key (stays here), revoked.pem (for the server; signed), server.pem and .key, clients/NAME.pem
// and .key, issued.txt. Keys can be read by their owner alone.
struct CertificatePaths {
  explicit CertificatePaths(const std::filesystem::path& folder);
  std::filesystem::path ca, ca_key, revoked, server, server_key, clients, issued;
};

inline constexpr int kAuthorityDays = 3650;
inline constexpr int kCertificateDays = 397;

struct Issued {
  std::filesystem::path certificate;
  std::filesystem::path key;
  std::string ends;  // "2027-12-17"
};

// `password` encrypts ca.key (AES-256) and is needed for every later use; empty: not encrypted. Refuses a
// folder that holds an authority already.
Issued make_authority(const std::filesystem::path& folder, const std::string& name, int days,
                      const std::string& password = "");
// For the names and addresses that clients will call the server by. Replaces the one before.
Issued issue_server(const std::filesystem::path& folder, const std::vector<std::string>& hosts, int days,
                    const std::string& password = "");
// The name is the client's identity. Replaces the files of the one before, which stays good until it ends or
// is revoked.
Issued issue_client(const std::filesystem::path& folder, const std::string& name, int days,
                    const std::string& password = "");
// All certificates of that name. Returns how many they are.
size_t revoke_client(const std::filesystem::path& folder, const std::string& name,
                     const std::string& password = "");

// Renewal, without the key leaving the device. The device writes a request (PEM): its certificate and a
// signing request by the same key. The authority answers with a new certificate for that key where the old
// one is its own, has not expired and was not revoked; otherwise an input_error. Returns the certificate
// (PEM).
std::string renewal_request(const std::filesystem::path& certificate, const std::filesystem::path& key);
std::string renew_client(const std::filesystem::path& folder, const std::string& request, int days,
                         const std::string& password = "");

}  // namespace bitfed
