#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace bitfed {

// A private certificate authority in a folder, for one federation: ECDSA on P-256 with SHA-256. Files:
// ca.pem, ca.key (stays here), revoked.pem (for the server; signed), server.pem and .key, clients/NAME.pem
// and .key, operators/ likewise, issued.txt. Keys can be read by their owner alone.
struct CertificatePaths {
  explicit CertificatePaths(const std::filesystem::path& folder);
  std::filesystem::path ca, ca_key, revoked, server, server_key, clients, operators, issued;
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
// For `bitfed admin` over the network. It does not take part in rounds. Clients and operators share the
// names: revoking a name revokes both.
Issued issue_operator(const std::filesystem::path& folder, const std::string& name, int days,
                      const std::string& password = "");
// All certificates of that name. Returns how many they are.
size_t revoke_client(const std::filesystem::path& folder, const std::string& name,
                     const std::string& password = "");

// An input_error unless it can be a client's name, and so a file's.
void check_client_name(const std::string& name);

// Renewal, without the key leaving the device (see renewal.h for its request). The authority answers with a
// new certificate for that key where the old one is its own, has not expired and was not revoked; otherwise
// an input_error. Returns the certificate (PEM).
std::string renew_client(const std::filesystem::path& folder, const std::string& request, int days,
                         const std::string& password = "");
// Answers all requests of a folder, NAME.req with NAME.pem; a request that was answered or refused is
// removed. Returns how many were answered.
size_t renew_clients(const std::filesystem::path& folder, const std::filesystem::path& requests, int days,
                     const std::string& password,
                     const std::function<void(const std::string& text)>& refused);

}  // namespace bitfed
