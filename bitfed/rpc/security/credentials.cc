#include "bitfed/rpc/security/credentials.h"

#include <arpa/inet.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <algorithm>
#include <sstream>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/rpc/security/openssl.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kRefreshSeconds = 2;

// A pair that TLS can use, or an input_error that says what is wrong with it.
void check_pair(const fs::path& certificate_file, const fs::path& key_file) {
  const CertificatePointer certificate =
      parse_certificate(read_text_file(certificate_file), certificate_file.string());
  const KeyPointer key = parse_key(read_text_file(key_file), key_file.string());
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    throw input_error("{}: not the key of {}", key_file.string(), certificate_file.string());
  }
  if (is_expired(*certificate))
    throw input_error("{}: was good {}: expected a new one", certificate_file.string(), end_of(*certificate));
}

// When a file was last changed; changes within one tick of the clock show in the size or the number.
std::string stamp(const fs::path& file) {
  std::error_code code;
  if (file.empty()) return "";
  return fmt::format("{}-{}", fs::last_write_time(file, code).time_since_epoch().count(),
                     fs::file_size(file, code));
}

}  // namespace

std::shared_ptr<grpc::ServerCredentials> server_credentials(const ServerTrust& trust) {
  if (trust.plaintext) return grpc::InsecureServerCredentials();
  check_pair(trust.certificate, trust.key);
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
  parse_certificate(read_text_file(trust.ca), trust.ca.string());
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = read_text_file(trust.ca);
  options.pem_private_key = read_text_file(trust.key);
  options.pem_cert_chain = read_text_file(trust.certificate);
  return grpc::SslCredentials(options);
}

void require_loopback(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  in_addr parsed{};
  const bool of_127 = inet_pton(AF_INET, host.c_str(), &parsed) == 1 && ntohl(parsed.s_addr) >> 24 == 127;
  if (of_127 || host == "localhost" || host == "[::1]") return;
  throw input_error(
      "{}: found --plaintext with an address that others can reach, expected 127.0.0.1: certificates "
      "are made by bitfed certs",
      address);
}

struct CertificateCheck::Lists {
  std::string stamp;
  RevocationListPointer revoked;
  std::set<std::string> allowed;
};

CertificateCheck::CertificateCheck(const ServerTrust& trust)
    : trust_(trust), lists_(std::make_unique<Lists>()) {
  refresh();
}

CertificateCheck::~CertificateCheck() = default;

std::string CertificateCheck::version() const {
  return stamp(trust_.revoked) + "/" + stamp(trust_.allowed) + "/" + stamp(trust_.client_ca);
}

// A list that cannot be read leaves nobody welcome until it can: the error goes to whoever asked.
void CertificateCheck::refresh() {
  const std::string now = version();
  if (now == lists_->stamp) return;
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
  if (!trust_.allowed.empty()) {
    std::istringstream text(read_text_file(trust_.allowed));
    std::string name;
    while (text >> name) lists.allowed.insert(name);
  }
  lists.stamp = now;
  *lists_ = std::move(lists);
}

std::string CertificateCheck::name_of(const std::string& pem) {
  const CertificatePointer certificate = parse_certificate(pem, "the client's certificate");
  const std::string name = common_name(*certificate);
  if (name.empty()) throw input_error("the client's certificate: expected a common name");
  if (is_expired(*certificate))
    throw input_error("the certificate of '{}' was good {}", name, end_of(*certificate));
  const std::lock_guard lock(mutex_);
  refresh();
  X509_REVOKED* entry = nullptr;
  if (lists_->revoked && X509_CRL_get0_by_cert(lists_->revoked.get(), &entry, certificate.get()) == 1)
    throw input_error("the certificate of '{}' was revoked", name);
  if (!trust_.allowed.empty() && !lists_->allowed.contains(name))
    throw input_error("client '{}' is not on the list of those who may take part", name);
  return name;
}

bool CertificateCheck::is_welcome(const std::string& certificate) {
  try {
    name_of(certificate);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace bitfed
