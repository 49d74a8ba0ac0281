#include "bitfed/rpc/security/openssl.h"

#include <openssl/bn.h>

#include <cstring>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"

namespace bitfed {
namespace {

// Gives OpenSSL the password in `text`. Without one it fails: asking at the terminal would hang a service.
int give_password(char* buffer, int size, int /*writing*/, void* text) {
  const auto& password = *static_cast<const std::string*>(text);
  if (password.empty() || password.size() > static_cast<size_t>(size)) return -1;
  std::memcpy(buffer, password.data(), password.size());
  return static_cast<int>(password.size());
}

template <typename T, typename Read>
T* parse(const std::string& pem, const std::string& source, const char* what, Read read,
         const std::string& password = "") {
  const BioPointer memory(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  T* object = read(memory.get(), nullptr, give_password, const_cast<std::string*>(&password));
  ERR_clear_error();
  if (object == nullptr) throw input_error("{}: expected {} (PEM)", source, what);
  return object;
}

// The first entry of a kind in the subject's name; empty: none.
std::string subject_entry(const X509& certificate, int kind) {
  const X509_NAME* name = X509_get_subject_name(&certificate);
  const int at = X509_NAME_get_index_by_NID(name, kind, -1);
  if (at < 0) return "";
  const ASN1_STRING* text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));
  const auto* first = reinterpret_cast<const char*>(ASN1_STRING_get0_data(text));
  return {first, static_cast<size_t>(ASN1_STRING_length(text))};
}

}  // namespace

void check_openssl(bool good, const char* what) {
  if (!good) throw failure("OpenSSL: {} failed: {}", what, ERR_error_string(ERR_get_error(), nullptr));
}

CertificatePointer parse_certificate(const std::string& pem, const std::string& source) {
  return CertificatePointer(parse<X509>(pem, source, "a certificate", PEM_read_bio_X509));
}

KeyPointer parse_key(const std::string& pem, const std::string& source, const std::string& password) {
  const bool encrypted = pem.find("BEGIN ENCRYPTED") != std::string::npos;
  const char* const what = !encrypted         ? "a private key"
                           : password.empty() ? "a private key without a password, or its password"
                                              : "a private key, and its password";
  return KeyPointer(parse<EVP_PKEY>(pem, source, what, PEM_read_bio_PrivateKey, password));
}

RequestPointer parse_request(const std::string& pem, const std::string& source) {
  return RequestPointer(parse<X509_REQ>(pem, source, "a signing request", PEM_read_bio_X509_REQ));
}

RevocationListPointer parse_revocation_list(const std::string& pem, const std::string& source) {
  return RevocationListPointer(parse<X509_CRL>(pem, source, "a revocation list", PEM_read_bio_X509_CRL));
}

std::string common_name(const X509& certificate) {
  return subject_entry(certificate, NID_commonName);
}

bool is_operator(const X509& certificate) {
  return subject_entry(certificate, NID_organizationalUnitName) == kOperatorUnit;
}

std::string serial_of(const X509& certificate) {
  const std::unique_ptr<BIGNUM, FreeBy<BN_free>> number(
      ASN1_INTEGER_to_BN(X509_get0_serialNumber(&certificate), nullptr));
  char* digits = BN_bn2hex(number.get());
  std::string text = digits;
  OPENSSL_free(digits);
  return text;
}

std::string end_of(const X509& certificate) {
  tm time{};
  ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &time);
  return fmt::format("{:04}-{:02}-{:02}", time.tm_year + 1900, time.tm_mon + 1, time.tm_mday);
}

int64_t seconds_left(const X509& certificate) {
  int days = 0;
  int seconds = 0;
  ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(&certificate));
  return int64_t{days} * 86400 + seconds;
}

std::optional<int64_t> certificate_seconds_left(const std::filesystem::path& file) {
  try {
    return seconds_left(*parse_certificate(read_text_file(file), file.string()));
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool is_expired(const X509& certificate) {
  return X509_cmp_current_time(X509_get0_notAfter(&certificate)) < 0;
}

}  // namespace bitfed
