#include "bitfed/rpc/security/certificates.h"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/rand.h>
#include <sys/stat.h>

#include <algorithm>
#include <sstream>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/rpc/protocol.h"
#include "bitfed/rpc/security/openssl.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

// Devices' clocks are not always right.
constexpr long kBackdateSeconds = 3600;

void write_key(const fs::path& path, EVP_PKEY* key, const std::string& password = "") {
  // The file never has a wider mode.
  const mode_t before = umask(0077);
  try {
    write_file_atomically(path, to_pem([&](BIO* memory) {
                            const EVP_CIPHER* cipher = password.empty() ? nullptr : EVP_aes_256_cbc();
                            return PEM_write_bio_PKCS8PrivateKey(memory, key, cipher, password.data(),
                                                                 static_cast<int>(password.size()), nullptr,
                                                                 nullptr);
                          }));
  } catch (...) {
    umask(before);
    throw;
  }
  umask(before);
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
}

void write_certificate(const fs::path& path, X509* certificate) {
  write_file_atomically(path, to_pem([&](BIO* memory) { return PEM_write_bio_X509(memory, certificate); }));
}

KeyPointer make_key() {
  KeyPointer key(EVP_EC_gen("P-256"));
  check_openssl(key != nullptr, "making a key");
  return key;
}

void set_random_serial(X509* certificate) {
  uint8_t bytes[16];
  check_openssl(RAND_bytes(bytes, sizeof bytes) == 1, "drawing a serial number");
  bytes[0] = static_cast<uint8_t>((bytes[0] & 0x7f) | 0x40);  // positive, and always of the same length
  const std::unique_ptr<BIGNUM, FreeBy<BN_free>> number(BN_bin2bn(bytes, sizeof bytes, nullptr));
  check_openssl(BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr,
                "a serial number");
}

void add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, FreeBy<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  check_openssl(extension != nullptr, value.c_str());
  check_openssl(X509_add_ext(certificate, extension.get(), -1) == 1, "adding an extension");
}

// With what all of ours have: version 3, random serial, name, times, key.
CertificatePointer begin_certificate(const std::string& name, int days, EVP_PKEY* key,
                                     const char* unit = nullptr) {
  CertificatePointer certificate(X509_new());
  X509* const x = certificate.get();
  check_openssl(X509_set_version(x, X509_VERSION_3) == 1, "a certificate's version");
  set_random_serial(x);
  const auto add_to_name = [&](int kind, std::string_view text) {
    check_openssl(X509_NAME_add_entry_by_NID(X509_get_subject_name(x), kind, MBSTRING_UTF8,
                                             reinterpret_cast<const uint8_t*>(text.data()),
                                             static_cast<int>(text.size()), -1, 0) == 1,
                  "a certificate's name");
  };
  add_to_name(NID_commonName, name);
  if (unit != nullptr) add_to_name(NID_organizationalUnitName, unit);
  X509_gmtime_adj(X509_getm_notBefore(x), -kBackdateSeconds);
  X509_time_adj_ex(X509_getm_notAfter(x), days, 0, nullptr);
  check_openssl(X509_set_pubkey(x, key) == 1, "a certificate's key");
  return certificate;
}

struct Authority {
  CertificatePointer certificate;
  KeyPointer key;
};

Authority load_authority(const CertificatePaths& paths, const std::string& password) {
  std::error_code code;
  if (!fs::exists(paths.ca_key, code)) {
    throw input_error("{}: no certificate authority here; bitfed certs init makes one",
                      paths.ca.parent_path().string());
  }
  return {parse_certificate(read_text_file(paths.ca), paths.ca.string()),
          parse_key(read_text_file(paths.ca_key), paths.ca_key.string(), password)};
}

void sign(X509* certificate, const Authority& authority, const char* use) {
  X509* const issuer = authority.certificate.get();
  check_openssl(X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1, "an issuer's name");
  add_extension(certificate, issuer, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(certificate, issuer, NID_key_usage, "critical,digitalSignature");
  add_extension(certificate, issuer, NID_ext_key_usage, use);
  add_extension(certificate, issuer, NID_subject_key_identifier, "hash");
  add_extension(certificate, issuer, NID_authority_key_identifier, "keyid:always");
  check_openssl(X509_sign(certificate, authority.key.get(), EVP_sha256()) > 0, "signing a certificate");
}

struct IssuedLine {
  std::string serial;
  std::string name;
};

std::vector<IssuedLine> read_issued(const fs::path& path) {
  std::error_code code;
  if (!fs::exists(path, code)) return {};
  std::vector<IssuedLine> lines;
  std::istringstream text(read_text_file(path));
  IssuedLine line;
  while (text >> line.serial >> line.name) lines.push_back(line);
  return lines;
}

void note_issued(const fs::path& path, const X509& certificate) {
  std::string text;
  for (const IssuedLine& line : read_issued(path)) text += fmt::format("{} {}\n", line.serial, line.name);
  text += fmt::format("{} {}\n", serial_of(certificate), common_name(certificate));
  write_file_atomically(path, text);
}

void write_revoked(const CertificatePaths& paths, const Authority& authority,
                   const std::vector<std::string>& serials) {
  const RevocationListPointer list(X509_CRL_new());
  X509_CRL* const crl = list.get();
  check_openssl(X509_CRL_set_version(crl, X509_CRL_VERSION_2) == 1, "a revocation list's version");
  check_openssl(X509_CRL_set_issuer_name(crl, X509_get_subject_name(authority.certificate.get())) == 1,
                "a revocation list's issuer");
  const std::unique_ptr<ASN1_TIME, FreeBy<ASN1_TIME_free>> now(X509_gmtime_adj(nullptr, 0));
  X509_CRL_set1_lastUpdate(crl, now.get());
  X509_CRL_set1_nextUpdate(crl, X509_get0_notAfter(authority.certificate.get()));
  for (const std::string& serial : serials) {
    BIGNUM* number = nullptr;
    check_openssl(BN_hex2bn(&number, serial.c_str()) > 0, "a serial number");
    const std::unique_ptr<BIGNUM, FreeBy<BN_free>> held(number);
    const std::unique_ptr<ASN1_INTEGER, FreeBy<ASN1_INTEGER_free>> integer(
        BN_to_ASN1_INTEGER(number, nullptr));
    X509_REVOKED* revoked = X509_REVOKED_new();
    X509_REVOKED_set_serialNumber(revoked, integer.get());
    X509_REVOKED_set_revocationDate(revoked, now.get());
    check_openssl(X509_CRL_add0_revoked(crl, revoked) == 1, "revoking");
  }
  X509_CRL_sort(crl);
  check_openssl(X509_CRL_sign(crl, authority.key.get(), EVP_sha256()) > 0, "signing a revocation list");
  write_file_atomically(paths.revoked,
                        to_pem([&](BIO* memory) { return PEM_write_bio_X509_CRL(memory, crl); }));
}

std::vector<std::string> read_revoked(const CertificatePaths& paths) {
  const RevocationListPointer list =
      parse_revocation_list(read_text_file(paths.revoked), paths.revoked.string());
  std::vector<std::string> serials;
  STACK_OF(X509_REVOKED)* const all = X509_CRL_get_REVOKED(list.get());
  for (int i = 0; i < sk_X509_REVOKED_num(all); ++i) {
    const std::unique_ptr<BIGNUM, FreeBy<BN_free>> number(
        ASN1_INTEGER_to_BN(X509_REVOKED_get0_serialNumber(sk_X509_REVOKED_value(all, i)), nullptr));
    char* digits = BN_bn2hex(number.get());
    serials.emplace_back(digits);
    OPENSSL_free(digits);
  }
  return serials;
}

bool is_address(const std::string& host) {
  const std::unique_ptr<ASN1_OCTET_STRING, FreeBy<ASN1_OCTET_STRING_free>> address(
      a2i_IPADDRESS(host.c_str()));
  ERR_clear_error();
  return address != nullptr;
}

struct IssueOptions {
  int days = 0;
  const std::string& password;
  const char* unit = nullptr;  // of the organisation; null: none
};

Issued issue(const fs::path& folder, const fs::path& to, const std::string& name,
             const IssueOptions& options) {
  const CertificatePaths paths(folder);
  check_client_name(name);
  const Authority authority = load_authority(paths, options.password);
  const KeyPointer key = make_key();
  const CertificatePointer certificate = begin_certificate(name, options.days, key.get(), options.unit);
  sign(certificate.get(), authority, "clientAuth");
  // Noted first: whatever was handed out can be revoked.
  note_issued(paths.issued, *certificate);
  create_folders(to);
  const Issued issued{to / (name + ".pem"), to / (name + ".key"), end_of(*certificate)};
  write_key(issued.key, key.get());
  write_certificate(issued.certificate, certificate.get());
  return issued;
}

}  // namespace

void check_client_name(const std::string& name) {
  const auto fine = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; };
  if (name.empty() || name[0] == '.' || name.size() > kMaxNameBytes ||
      !std::all_of(name.begin(), name.end(), fine)) {
    throw input_error("name '{}': expected 1 to {} letters, digits, '-', '_' and '.'", name, kMaxNameBytes);
  }
}

CertificatePaths::CertificatePaths(const fs::path& folder)
    : ca(folder / "ca.pem"),
      ca_key(folder / "ca.key"),
      revoked(folder / "revoked.pem"),
      server(folder / "server.pem"),
      server_key(folder / "server.key"),
      clients(folder / "clients"),
      operators(folder / "operators"),
      issued(folder / "issued.txt") {}

Issued make_authority(const fs::path& folder, const std::string& name, int days,
                      const std::string& password) {
  const CertificatePaths paths(folder);
  check_client_name(name);
  std::error_code code;
  if (fs::exists(paths.ca, code) || fs::exists(paths.ca_key, code))
    throw input_error("{}: holds a certificate authority already", folder.string());
  create_folders(paths.clients);
  Authority authority{nullptr, make_key()};
  authority.certificate = begin_certificate(name, days, authority.key.get());
  X509* const certificate = authority.certificate.get();
  check_openssl(X509_set_issuer_name(certificate, X509_get_subject_name(certificate)) == 1,
                "an issuer's name");
  add_extension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(certificate, certificate, NID_key_usage, "critical,keyCertSign,cRLSign");
  add_extension(certificate, certificate, NID_subject_key_identifier, "hash");
  check_openssl(X509_sign(certificate, authority.key.get(), EVP_sha256()) > 0, "signing a certificate");
  write_key(paths.ca_key, authority.key.get(), password);
  write_certificate(paths.ca, certificate);
  write_revoked(paths, authority, {});
  return {paths.ca, paths.ca_key, end_of(*certificate)};
}

Issued issue_server(const fs::path& folder, const std::vector<std::string>& hosts, int days,
                    const std::string& password) {
  const CertificatePaths paths(folder);
  const Authority authority = load_authority(paths, password);
  if (hosts.empty()) throw input_error("a server's certificate: expected at least one host name or address");
  std::string names;
  for (const std::string& host : hosts) {
    if (host.empty() || host.find_first_of(",: \n") != std::string::npos) {
      // IPv6 addresses have colons.
      if (!is_address(host)) throw input_error("host '{}': expected a name or an address", host);
    }
    names += fmt::format("{}{}:{}", names.empty() ? "" : ",", is_address(host) ? "IP" : "DNS", host);
  }
  const KeyPointer key = make_key();
  const CertificatePointer certificate =
      begin_certificate(hosts.front().substr(0, kMaxNameBytes), days, key.get());
  add_extension(certificate.get(), authority.certificate.get(), NID_subject_alt_name, names);
  sign(certificate.get(), authority, "serverAuth");
  write_key(paths.server_key, key.get());
  write_certificate(paths.server, certificate.get());
  return {paths.server, paths.server_key, end_of(*certificate)};
}

Issued issue_client(const fs::path& folder, const std::string& name, int days, const std::string& password) {
  return issue(folder, CertificatePaths(folder).clients, name, {days, password, nullptr});
}

Issued issue_operator(const fs::path& folder, const std::string& name, int days,
                      const std::string& password) {
  return issue(folder, CertificatePaths(folder).operators, name, {days, password, kOperatorUnit});
}

size_t revoke_client(const fs::path& folder, const std::string& name, const std::string& password) {
  const CertificatePaths paths(folder);
  const Authority authority = load_authority(paths, password);
  std::vector<std::string> serials = read_revoked(paths);
  size_t count = 0;
  for (const IssuedLine& line : read_issued(paths.issued)) {
    if (line.name != name) continue;
    ++count;
    if (std::find(serials.begin(), serials.end(), line.serial) == serials.end())
      serials.push_back(line.serial);
  }
  if (count == 0) throw input_error("{}: no certificate was issued to '{}'", paths.issued.string(), name);
  write_revoked(paths, authority, serials);
  return count;
}

std::string renew_client(const fs::path& folder, const std::string& text, int days,
                         const std::string& password) {
  const CertificatePaths paths(folder);
  const Authority authority = load_authority(paths, password);
  const CertificatePointer old = parse_certificate(text, "the request");
  const RequestPointer request = parse_request(text, "the request");
  const std::string name = common_name(*old);
  check_client_name(name);
  const auto refuse = [&](const char* why) {
    ERR_clear_error();
    return input_error("the request of '{}': {}", name, why);
  };
  if (X509_verify(old.get(), X509_get0_pubkey(authority.certificate.get())) != 1)
    throw refuse("found a certificate of another authority, expected one of this folder's");
  if (X509_check_purpose(old.get(), X509_PURPOSE_SSL_CLIENT, 0) != 1)
    throw refuse("found a certificate that is not a client's");
  if (is_operator(*old)) throw refuse("found an operator's certificate; issue a new one");
  if (is_expired(*old))
    throw refuse("its certificate has expired; issue a new one with `bitfed certs client`");
  const std::vector<std::string> revoked = read_revoked(paths);
  if (std::find(revoked.begin(), revoked.end(), serial_of(*old)) != revoked.end())
    throw refuse("its certificate was revoked");
  EVP_PKEY* const key = X509_get0_pubkey(old.get());
  if (X509_REQ_verify(request.get(), key) != 1)
    throw refuse("found a signature by another key, expected the certificate's");
  const CertificatePointer renewed = begin_certificate(name, days, key);
  sign(renewed.get(), authority, "clientAuth");
  note_issued(paths.issued, *renewed);
  return to_pem([&](BIO* memory) { return PEM_write_bio_X509(memory, renewed.get()); });
}

size_t renew_clients(const fs::path& folder, const fs::path& requests, int days, const std::string& password,
                     const std::function<void(const std::string& text)>& refused) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(requests)) {
    if (entry.path().extension() == ".req") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  size_t count = 0;
  for (const fs::path& file : files) {
    try {
      write_file_atomically(fs::path(file).replace_extension(".pem"),
                            renew_client(folder, read_text_file(file), days, password));
      ++count;
    } catch (const Error& error) {
      if (error.kind() != Error::Kind::kInput) throw;
      refused(fmt::format("{}: {}", file.string(), error.what()));
    }
    fs::remove(file);
  }
  return count;
}

}  // namespace bitfed
