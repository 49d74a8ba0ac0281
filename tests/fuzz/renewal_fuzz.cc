// A member's request for a new certificate, which the server's mailbox and the authority read, and the
// certificate that a device is handed. The first byte chooses: the input as it is, or an honest request with
// edits to the bytes within its PEM (kind, position in two bytes, value). Whatever it is, the authority signs
// only that client's name and key.

#include <stdlib.h>

#include <filesystem>
#include <vector>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/rpc/security/certificates.h"
#include "bitfed/rpc/security/openssl.h"
#include "bitfed/rpc/security/renewal.h"
#include "bitfed/rpc/server/renewal_mailbox.h"

namespace {

namespace fs = std::filesystem;

void must(bool holds) {
  if (!holds) std::abort();
}

template <typename Object>
std::vector<uint8_t> der_of(const Object& object, int (*write)(const Object*, unsigned char**)) {
  std::vector<uint8_t> der(static_cast<size_t>(write(&object, nullptr)));
  unsigned char* to = der.data();
  must(write(&object, &to) > 0);
  return der;
}

std::string pem_of(const char* kind, const std::vector<uint8_t>& der) {
  if (der.empty()) return "";
  return bitfed::to_pem([&](BIO* memory) {
    return PEM_write_bio(memory, kind, "", der.data(), static_cast<long>(der.size())) > 0 ? 1 : 0;
  });
}

// An authority with one client, for all inputs.
struct Authority {
  fs::path folder;
  bitfed::Issued ann;
  std::vector<uint8_t> certificate;
  std::vector<uint8_t> request;

  Authority() {
    std::string pattern = fs::temp_directory_path() / "bitfed-fuzz-XXXXXX";
    must(mkdtemp(pattern.data()) != nullptr);
    folder = pattern;
    bitfed::make_authority(folder, "fuzz", 30);
    ann = bitfed::issue_client(folder, "ann", 3);
    const std::string text = bitfed::renewal_request(ann.certificate, ann.key);
    certificate = der_of(*bitfed::parse_certificate(text, "ann"), i2d_X509);
    request = der_of(*bitfed::parse_request(text, "ann"), i2d_X509_REQ);
  }
  ~Authority() { fs::remove_all(folder); }
};

std::string edited(const Authority& authority, const uint8_t* data, size_t size) {
  std::vector<uint8_t> certificate = authority.certificate;
  std::vector<uint8_t> request = authority.request;
  for (; size >= 4; data += 4, size -= 4) {
    std::vector<uint8_t>& der = (data[0] & 1) != 0 ? request : certificate;
    const size_t at = (data[1] + 256u * data[2]) % (der.size() + 1);
    const auto place = der.begin() + static_cast<std::ptrdiff_t>(at);
    if ((data[0] & 6) == 0 && at < der.size()) der[at] = data[3];
    if ((data[0] & 6) == 2 && at < der.size()) der.erase(place);
    if ((data[0] & 6) == 4) der.insert(place, data[3]);
    if ((data[0] & 6) == 6) der.resize(at);
  }
  return pem_of("CERTIFICATE", certificate) + pem_of("CERTIFICATE REQUEST", request);
}

// Runs it; an input_error is an answer, too.
template <typename Run>
void try_to(const Run& run) {
  try {
    run();
  } catch (const bitfed::Error& error) {
    must(error.kind() == bitfed::Error::Kind::kInput);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Authority authority;
  if (size == 0) return 0;
  const std::string text =
      data[0] % 2 == 0 ? std::string(data + 1, data + size) : edited(authority, data + 1, size - 1);
  const fs::path requests = authority.folder / "renewals";
  try_to([&] { bitfed::RenewalMailbox(requests).ask("ann", text); });
  fs::remove(requests / "ann.req");
  const auto key = bitfed::parse_key(bitfed::read_text_file(authority.ann.key), "key");
  try_to([&] {
    const auto renewed = bitfed::parse_certificate(bitfed::renew_client(authority.folder, text, 30), "new");
    must(bitfed::common_name(*renewed) == "ann" && !bitfed::is_operator(*renewed));
    must(X509_check_private_key(renewed.get(), key.get()) == 1);
  });
  try_to([&] {
    const bitfed::ClientTrust trust{authority.folder / "ca.pem", authority.ann.certificate, authority.ann.key,
                                    false};
    bitfed::install_renewed(trust, text);
    const auto installed = bitfed::parse_certificate(bitfed::read_text_file(trust.certificate), "installed");
    must(X509_check_private_key(installed.get(), key.get()) == 1);
    bitfed::write_file_atomically(trust.certificate,
                                  std::string_view(pem_of("CERTIFICATE", authority.certificate)));
  });
  return 0;
}
