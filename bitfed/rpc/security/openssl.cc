#include "bitfed/rpc/security/openssl.h"

#include <openssl/bn.h>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

template <typename T, typename Read>
T* parse(const std::string& pem, const std::string& source, const char* what, Read read) {
  const BioPointer memory(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  // No key of ours has a password; asking for one would hang a service.
  T* object = read(
      memory.get(), nullptr, [](char*, int, int, void*) { return -1; }, nullptr);
  ERR_clear_error();
  if (object == nullptr) throw input_error("{}: expected {} (PEM)", source, what);
  return object;
}

}  // namespace

CertificatePointer parse_certificate(const std::string& pem, const std::string& source) {
  return CertificatePointer(parse<X509>(pem, source, "a certificate", PEM_read_bio_X509));
}

KeyPointer parse_key(const std::string& pem, const std::string& source) {
  return KeyPointer(
      parse<EVP_PKEY>(pem, source, "a private key without a password", PEM_read_bio_PrivateKey));
}

RevocationListPointer parse_revocation_list(const std::string& pem, const std::string& source) {
  return RevocationListPointer(parse<X509_CRL>(pem, source, "a revocation list", PEM_read_bio_X509_CRL));
}

std::string common_name(const X509& certificate) {
  const X509_NAME* name = X509_get_subject_name(&certificate);
  const int at = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
  if (at < 0) return "";
  const ASN1_STRING* text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));
  const auto* first = reinterpret_cast<const char*>(ASN1_STRING_get0_data(text));
  return {first, static_cast<size_t>(ASN1_STRING_length(text))};
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
  return fmt::format("until {:04}-{:02}-{:02}", time.tm_year + 1900, time.tm_mon + 1, time.tm_mday);
}

bool is_expired(const X509& certificate) {
  return X509_cmp_current_time(X509_get0_notAfter(&certificate)) < 0;
}

}  // namespace bitfed
