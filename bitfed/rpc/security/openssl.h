#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace bitfed {

template <auto free>
struct FreeBy {
  template <typename T>
  void operator()(T* object) const {
    free(object);
  }
};
using BioPointer = std::unique_ptr<BIO, FreeBy<BIO_free_all>>;
using KeyPointer = std::unique_ptr<EVP_PKEY, FreeBy<EVP_PKEY_free>>;
using CertificatePointer = std::unique_ptr<X509, FreeBy<X509_free>>;
using RequestPointer = std::unique_ptr<X509_REQ, FreeBy<X509_REQ_free>>;
using RevocationListPointer = std::unique_ptr<X509_CRL, FreeBy<X509_CRL_free>>;

// A failure that names `what` and OpenSSL's reason, unless `good`.
void check_openssl(bool good, const char* what);

// What `write` writes to the BIO that it is given.
template <typename Write>
std::string to_pem(Write write) {
  const BioPointer memory(BIO_new(BIO_s_mem()));
  check_openssl(write(memory.get()) == 1, "writing PEM");
  char* first = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &first);
  return {first, static_cast<size_t>(size)};
}

// Of PEM; `source` is named in the input_error where it is none.
CertificatePointer parse_certificate(const std::string& pem, const std::string& source);
KeyPointer parse_key(const std::string& pem, const std::string& source, const std::string& password = "");
RequestPointer parse_request(const std::string& pem, const std::string& source);
RevocationListPointer parse_revocation_list(const std::string& pem, const std::string& source);

std::string common_name(const X509& certificate);  // empty: none
std::string serial_of(const X509& certificate);    // hexadecimal

// An operator's certificate has this organisational unit; a client's has none.
inline constexpr const char* kOperatorUnit = "bitfed operator";
bool is_operator(const X509& certificate);

// The day on which it expires, "2027-12-17"; the seconds until then; whether that is past.
std::string end_of(const X509& certificate);
int64_t seconds_left(const X509& certificate);
// Of the certificate in a file; none where it cannot be read.
std::optional<int64_t> certificate_seconds_left(const std::filesystem::path& file);
bool is_expired(const X509& certificate);

}  // namespace bitfed
