#include "bitfed/rpc/server/renewal_mailbox.h"

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/rpc/security/certificates.h"
#include "bitfed/rpc/security/openssl.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxRequestBytes = 16384;

// Whether `file` holds a certificate for the same key that expires later; one that cannot be read does not.
bool answers(const fs::path& file, const X509& old) {
  try {
    const CertificatePointer renewed = parse_certificate(read_text_file(file), file.string());
    return EVP_PKEY_eq(X509_get0_pubkey(renewed.get()), X509_get0_pubkey(&old)) == 1 &&
           seconds_left(*renewed) > seconds_left(old);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string RenewalMailbox::ask(const std::string& name, const std::string& request) const {
  check_client_name(name);
  if (request.size() > kMaxRequestBytes)
    throw input_error("a request of {} bytes for a certificate, expected at most {}", request.size(),
                      kMaxRequestBytes);
  const CertificatePointer old = parse_certificate(request, "the request");
  parse_request(request, "the request");
  if (common_name(*old) != name) throw input_error("found the request of another client, expected its own");
  create_folders(folder_);
  const fs::path answer = folder_ / (name + ".pem");
  const fs::path waiting = folder_ / (name + ".req");
  if (answers(answer, *old)) return read_text_file(answer);
  std::error_code code;
  if (!fs::exists(waiting, code)) write_file_atomically(waiting, request);
  return "";
}

}  // namespace bitfed
