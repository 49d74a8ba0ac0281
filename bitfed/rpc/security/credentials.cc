#include "bitfed/rpc/security/credentials.h"

#include <arpa/inet.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <charconv>
#include <map>
#include <sstream>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/rpc/security/openssl.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kRefreshSeconds = 2;

// An input_error unless TLS can use the pair.
void check_pair(const fs::path& certificate_file, const fs::path& key_file) {
  const CertificatePointer certificate =
      parse_certificate(read_text_file(certificate_file), certificate_file.string());
  const KeyPointer key = parse_key(read_text_file(key_file), key_file.string());
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    throw input_error("{}: not the key of {}", key_file.string(), certificate_file.string());
  }
}

void check_not_expired(const fs::path& file, const char* command) {
  const CertificatePointer certificate = parse_certificate(read_text_file(file), file.string());
  if (is_expired(*certificate)) {
    throw input_error("{}: expired on {}; issue a new one with `bitfed certs {}`", file.string(),
                      end_of(*certificate), command);
  }
}

// When a file was last changed; changes within one tick of the clock show in the size or the number.
std::string stamp(const fs::path& file) {
  std::error_code code;
  if (file.empty()) return "";
  return fmt::format("{}-{}", fs::last_write_time(file, code).time_since_epoch().count(),
                     fs::file_size(file, code));
}

bool ends_with_newline(const fs::path& file) {
  const std::string text = read_text_file(file);
  return !text.empty() && text.back() == '\n';
}

// A client per line: its name, and optionally the part that is reserved for it.
std::map<std::string, std::optional<uint32_t>> parse_allowed(const std::string& text, const fs::path& file) {
  std::map<std::string, std::optional<uint32_t>> allowed;
  std::istringstream lines(text);
  std::string line;
  for (size_t number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    std::string name;
    std::string part;
    std::string more;
    if (!(words >> name)) continue;
    std::optional<uint32_t>& reserved = allowed[name];
    if (!(words >> part)) continue;
    uint32_t value = 0;
    const char* const end = part.data() + part.size();
    const auto [last, error] = std::from_chars(part.data(), end, value);
    if (error != std::errc() || last != end || words >> more) {
      throw input_error("{}: line {}: found '{}', expected a client's name and at most a part after it",
                        file.string(), number, line);
    }
    reserved = value;
  }
  return allowed;
}

}  // namespace

std::shared_ptr<grpc::ServerCredentials> server_credentials(const ServerTrust& trust) {
  if (trust.plaintext) return grpc::InsecureServerCredentials();
  check_pair(trust.certificate, trust.key);
  check_not_expired(trust.certificate, "server");
  parse_certificate(read_text_file(trust.client_ca), trust.client_ca.string());
  const auto provider = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      trust.key.string(), trust.certificate.string(), trust.client_ca.string(), kRefreshSeconds);
  grpc::experimental::TlsServerCredentialsOptions options(provider);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> client_credentials(const ClientTrust& trust) {
  if (trust.plaintext) return grpc::InsecureChannelCredentials();
  check_pair(trust.certificate, trust.key);
  check_not_expired(trust.certificate, "client");
  parse_certificate(read_text_file(trust.ca), trust.ca.string());
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = read_text_file(trust.ca);
  options.pem_private_key = read_text_file(trust.key);
  options.pem_cert_chain = read_text_file(trust.certificate);
  return grpc::SslCredentials(options);
}

const std::string& require_loopback(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  in_addr parsed{};
  const bool of_127 = inet_pton(AF_INET, host.c_str(), &parsed) == 1 && ntohl(parsed.s_addr) >> 24 == 127;
  if (of_127 || host == "localhost" || host == "[::1]") return address;
  throw input_error(
      "{}: found --plaintext with an address that others can reach, expected 127.0.0.1: certificates "
      "are made by bitfed certs",
      address);
}

struct CertificateCheck::Lists {
  RevocationListPointer revoked;
  std::map<std::string, std::optional<uint32_t>> allowed;  // by name: the part reserved for it
};

CertificateCheck::CertificateCheck(const ServerTrust& trust) : trust_(trust), looked_at_(version()) {
  lists_ = std::make_unique<Lists>(read_lists());
}

CertificateCheck::~CertificateCheck() = default;

std::string CertificateCheck::version() const {
  return stamp(trust_.revoked) + "/" + stamp(trust_.allowed) + "/" + stamp(trust_.client_ca);
}

CertificateCheck::Lists CertificateCheck::read_lists() const {
  Lists lists;
  if (!trust_.revoked.empty()) {
    lists.revoked = parse_revocation_list(read_text_file(trust_.revoked), trust_.revoked.string());
    const CertificatePointer ca =
        parse_certificate(read_text_file(trust_.client_ca), trust_.client_ca.string());
    if (X509_CRL_verify(lists.revoked.get(), X509_get0_pubkey(ca.get())) != 1) {
      ERR_clear_error();
      throw input_error("{}: not signed by {}", trust_.revoked.string(), trust_.client_ca.string());
    }
  }
  if (!trust_.allowed.empty()) lists.allowed = parse_allowed(read_text_file(trust_.allowed), trust_.allowed);
  return lists;
}

void CertificateCheck::refresh() {
  const std::string now = version();
  if (now == std::exchange(looked_at_, now)) return;
  try {
    Lists lists = read_lists();
    // A copy begins with an empty file, and ends with the last line's end.
    if (!trust_.allowed.empty() && (lists.allowed.empty() || !ends_with_newline(trust_.allowed)))
      throw input_error("{}: found no newline at its end, expected a whole list", trust_.allowed.string());
    *lists_ = std::move(lists);
  } catch (const Error& error) {
    complaints_.push_back(fmt::format("{}; the last good list stays in force", error.what()));
  }
}

std::vector<std::string> CertificateCheck::take_complaints() {
  const std::lock_guard lock(mutex_);
  return std::exchange(complaints_, {});
}

CertificateCheck::Answer CertificateCheck::check(const std::string& pem) {
  Answer answer;
  const auto refuse = [&](Standing standing, const std::string& text) {
    answer.standing = standing;
    answer.text = text;
    return answer;
  };
  CertificatePointer certificate;
  try {
    certificate = parse_certificate(pem, "the client's certificate");
  } catch (const Error& error) {
    return refuse(Standing::kRevoked, error.what());
  }
  answer.name = common_name(*certificate);
  answer.seconds_left = seconds_left(*certificate);
  answer.is_operator = is_operator(*certificate);
  if (answer.name.empty())
    return refuse(Standing::kRevoked, "the client's certificate: expected a common name");
  if (is_expired(*certificate)) {
    return refuse(Standing::kExpired,
                  fmt::format("the certificate of '{}' expired on {}; issue a new one with `bitfed "
                              "certs client {}`",
                              answer.name, end_of(*certificate), answer.name));
  }
  const std::lock_guard lock(mutex_);
  refresh();
  X509_REVOKED* entry = nullptr;
  if (lists_->revoked && X509_CRL_get0_by_cert(lists_->revoked.get(), &entry, certificate.get()) == 1)
    return refuse(Standing::kRevoked, fmt::format("the certificate of '{}' was revoked", answer.name));
  if (!trust_.allowed.empty() && !answer.is_operator) {
    const auto listed = lists_->allowed.find(answer.name);
    if (listed == lists_->allowed.end()) {
      return refuse(Standing::kNotListed,
                    fmt::format("client '{}' is not on the server's list of allowed clients", answer.name));
    }
    answer.part = listed->second;
  }
  return answer;
}

}  // namespace bitfed
