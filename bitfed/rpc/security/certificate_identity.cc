#include "bitfed/rpc/security/certificate_identity.h"

#include <algorithm>
#include <map>
#include <utility>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/rpc/security/openssl.h"
#include "bitfed/secure/protocol/primitives.h"

namespace bitfed {
namespace {

using StorePointer = std::unique_ptr<X509_STORE, FreeBy<X509_STORE_free>>;
using StoreContextPointer = std::unique_ptr<X509_STORE_CTX, FreeBy<X509_STORE_CTX_free>>;
using DigestPointer = std::unique_ptr<EVP_MD_CTX, FreeBy<EVP_MD_CTX_free>>;

constexpr size_t kMaxKnown = 4096;  // signed texts that are remembered, and as many before them

class CertificateIdentity : public Identity {
 public:
  CertificateIdentity(const ClientTrust& trust, Now now)
      : now_(std::move(now)),
        certificate_(parse_certificate(read_text_file(trust.certificate), trust.certificate.string())),
        key_(parse_key(read_text_file(trust.key), trust.key.string())),
        ca_(parse_certificate(read_text_file(trust.ca), trust.ca.string())),
        store_(X509_STORE_new()) {
    check_openssl(X509_STORE_add_cert(store_.get(), ca_.get()) == 1, "adding the authority");
  }

  Bytes certificate() const override {
    uint8_t* der = nullptr;
    const int size = i2d_X509(certificate_.get(), &der);
    check_openssl(size > 0, "writing a certificate");
    Bytes bytes(der, der + size);
    OPENSSL_free(der);
    return bytes;
  }

  Bytes sign(const Bytes& text) const override {
    const DigestPointer context(EVP_MD_CTX_new());
    check_openssl(EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key_.get()) == 1,
                  "signing");
    size_t size = 0;
    check_openssl(EVP_DigestSign(context.get(), nullptr, &size, text.data(), text.size()) == 1, "signing");
    Bytes signature(size);
    check_openssl(EVP_DigestSign(context.get(), signature.data(), &size, text.data(), text.size()) == 1,
                  "signing");
    signature.resize(size);
    return signature;
  }

  // What was checked once is good for as long as the certificates are.
  std::string check(const Bytes& certificate, const Bytes& text, const Bytes& signature) const override {
    const bool left_out = certificate.empty() && signature.empty();
    const Digest digest = digest_of(text);
    if (const Known* known = find(digest);
        known != nullptr && now_() < known->until &&
        (left_out || (known->certificate == certificate && known->signature == signature)))
      return known->name;
    return remember(digest, check_bytes(certificate, text, signature)).name;
  }

 private:
  struct Known {
    Bytes certificate;
    Bytes signature;
    std::string name;
    std::chrono::system_clock::time_point until;
  };

  const Known* find(const Digest& text) const {
    if (const auto found = known_.find(text); found != known_.end()) return &found->second;
    const auto found = before_.find(text);
    if (found == before_.end()) return nullptr;
    Known known = std::move(found->second);
    before_.erase(found);
    return &remember(text, std::move(known));
  }

  // The last kMaxKnown that were asked for are there in any case.
  const Known& remember(const Digest& text, Known known) const {
    if (known_.size() >= kMaxKnown) before_ = std::exchange(known_, {});
    return known_.insert_or_assign(text, std::move(known)).first->second;
  }

  Known check_bytes(const Bytes& certificate, const Bytes& text, const Bytes& signature) const {
    const uint8_t* der = certificate.data();
    const CertificatePointer peer(d2i_X509(nullptr, &der, static_cast<long>(certificate.size())));
    ERR_clear_error();
    if (peer == nullptr) throw input_error("expected a certificate");
    const StoreContextPointer chain(X509_STORE_CTX_new());
    check_openssl(X509_STORE_CTX_init(chain.get(), store_.get(), peer.get(), nullptr) == 1 &&
                      X509_STORE_CTX_set_purpose(chain.get(), X509_PURPOSE_SSL_CLIENT) == 1,
                  "checking a certificate");
    X509_STORE_CTX_set_time(chain.get(), 0, std::chrono::system_clock::to_time_t(now_()));
    const bool good = X509_verify_cert(chain.get()) == 1;
    ERR_clear_error();
    const std::string name = common_name(*peer);
    if (!good || is_operator(*peer) || name.empty()) {
      throw input_error("the certificate of '{}' is none of a client of this federation: {}", name,
                        good ? "an operator's, or without a name"
                             : X509_verify_cert_error_string(X509_STORE_CTX_get_error(chain.get())));
    }
    const DigestPointer context(EVP_MD_CTX_new());
    const bool signed_by_it =
        EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, X509_get0_pubkey(peer.get())) ==
            1 &&
        EVP_DigestVerify(context.get(), signature.data(), signature.size(), text.data(), text.size()) == 1;
    ERR_clear_error();
    if (!signed_by_it) throw input_error("the keys are not signed by '{}'", name);
    const int64_t left = std::min(seconds_left(*peer), seconds_left(*ca_));
    return {certificate, signature, name, std::chrono::system_clock::now() + std::chrono::seconds(left)};
  }

  Now now_;
  CertificatePointer certificate_;
  KeyPointer key_;
  CertificatePointer ca_;
  StorePointer store_;
  mutable std::map<Digest, Known> known_, before_;  // by their texts
};

}  // namespace

std::unique_ptr<Identity> make_certificate_identity(const ClientTrust& trust, Now now) {
  if (trust.plaintext) return std::make_unique<NoIdentity>();
  return std::make_unique<CertificateIdentity>(trust, std::move(now));
}

}  // namespace bitfed
