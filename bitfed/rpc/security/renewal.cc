#include "bitfed/rpc/security/renewal.h"

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/rpc/security/openssl.h"

namespace bitfed {

namespace fs = std::filesystem;

std::string renewal_request(const fs::path& certificate_file, const fs::path& key_file) {
  const std::string pem = read_text_file(certificate_file);
  const CertificatePointer certificate = parse_certificate(pem, certificate_file.string());
  const KeyPointer key = parse_key(read_text_file(key_file), key_file.string());
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    throw input_error("{}: not the key of {}", key_file.string(), certificate_file.string());
  }
  const RequestPointer request(X509_REQ_new());
  return to_pem([&](BIO* memory) {
    const bool good =
        X509_REQ_set_subject_name(request.get(), X509_get_subject_name(certificate.get())) == 1 &&
        X509_REQ_set_pubkey(request.get(), key.get()) == 1 &&
        X509_REQ_sign(request.get(), key.get(), EVP_sha256()) > 0 &&
        PEM_write_bio_X509(memory, certificate.get()) == 1 &&
        PEM_write_bio_X509_REQ(memory, request.get()) == 1;
    return good ? 1 : 0;
  });
}

void install_renewed(const ClientTrust& trust, const std::string& pem) {
  const std::string source = "the renewed certificate";
  const CertificatePointer renewed = parse_certificate(pem, source);
  const CertificatePointer old =
      parse_certificate(read_text_file(trust.certificate), trust.certificate.string());
  if (common_name(*renewed) != common_name(*old))
    throw input_error("{}: found the name '{}', expected '{}'", source, common_name(*renewed),
                      common_name(*old));
  if (EVP_PKEY_eq(X509_get0_pubkey(renewed.get()), X509_get0_pubkey(old.get())) != 1)
    throw input_error("{}: found another key, expected the device's", source);
  if (seconds_left(*renewed) <= seconds_left(*old))
    throw input_error("{}: expires on {}, expected later than the old one", source, end_of(*renewed));
  write_file_atomically(trust.certificate, pem);
}

}  // namespace bitfed
