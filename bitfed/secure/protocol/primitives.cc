#include "bitfed/secure/protocol/primitives.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cassert>
#include <memory>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

constexpr size_t kTagBytes = 16;

template <auto free>
struct FreeBy {
  template <typename T>
  void operator()(T* object) const {
    free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, FreeBy<EVP_PKEY_free>>;
using Cipher = std::unique_ptr<EVP_CIPHER_CTX, FreeBy<EVP_CIPHER_CTX_free>>;

void check(bool good, const char* what) {
  if (!good) throw failure("OpenSSL: {} failed: {}", what, ERR_error_string(ERR_get_error(), nullptr));
}

int size_of(std::span<const uint8_t> bytes) {
  assert(bytes.size() < size_t{1} << 30);
  return static_cast<int>(bytes.size());
}

}  // namespace

Secret random_secret() {
  Secret secret;
  check(RAND_bytes(secret.data(), static_cast<int>(secret.size())) == 1, "drawing random bytes");
  return secret;
}

Digest digest_of(std::span<const uint8_t> bytes) {
  Digest digest;
  check(EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr) == 1,
        "SHA-256");
  return digest;
}

KeyPair::KeyPair(const Secret& private_key)
    : key_(EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, private_key.data(), private_key.size()),
           [](void* key) { EVP_PKEY_free(static_cast<EVP_PKEY*>(key)); }) {
  size_t size = public_key_.size();
  check(key_ != nullptr &&
            EVP_PKEY_get_raw_public_key(static_cast<EVP_PKEY*>(key_.get()), public_key_.data(), &size) == 1,
        "an X25519 key");
}

Secret KeyPair::agree(const PublicKey& peer) const {
  const Key theirs(EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, peer.data(), peer.size()));
  check(theirs != nullptr, "an X25519 public key");
  const std::unique_ptr<EVP_PKEY_CTX, FreeBy<EVP_PKEY_CTX_free>> context(
      EVP_PKEY_CTX_new(static_cast<EVP_PKEY*>(key_.get()), nullptr));
  check(context != nullptr && EVP_PKEY_derive_init(context.get()) == 1 &&
            EVP_PKEY_derive_set_peer_ex(context.get(), theirs.get(), 0) == 1,
        "an agreement");
  Secret shared;
  size_t size = shared.size();
  // OpenSSL refuses the peers whose shared secret would be all zeros.
  if (EVP_PKEY_derive(context.get(), shared.data(), &size) != 1) {
    ERR_clear_error();
    throw input_error("a public key: expected a point that is not of low order");
  }
  return shared;
}

Bytes hkdf(std::span<const uint8_t> key, std::span<const uint8_t> salt, std::span<const uint8_t> info,
           size_t size) {
  static EVP_KDF* const kKdf = EVP_KDF_fetch(nullptr, "HKDF", nullptr);
  const std::unique_ptr<EVP_KDF_CTX, FreeBy<EVP_KDF_CTX_free>> context(EVP_KDF_CTX_new(kKdf));
  char digest[] = "SHA256";
  const auto octets = [](const char* name, std::span<const uint8_t> bytes) {
    return OSSL_PARAM_construct_octet_string(name, const_cast<uint8_t*>(bytes.data()), bytes.size());
  };
  OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
                             octets(OSSL_KDF_PARAM_KEY, key), octets(OSSL_KDF_PARAM_INFO, info),
                             OSSL_PARAM_construct_end(), OSSL_PARAM_construct_end()};
  if (!salt.empty()) parameters[3] = octets(OSSL_KDF_PARAM_SALT, salt);
  Bytes result(size);
  check(context != nullptr && EVP_KDF_derive(context.get(), result.data(), size, parameters) == 1, "HKDF");
  return result;
}

Secret derive(const Secret& key, std::string_view purpose, std::span<const uint8_t> context) {
  Bytes info(purpose.begin(), purpose.end());
  info.push_back(0);
  info.insert(info.end(), context.begin(), context.end());
  const Bytes bytes = hkdf(key, {}, info, Secret().size());
  Secret result;
  std::copy(bytes.begin(), bytes.end(), result.begin());
  return result;
}

KeyStream::KeyStream(const Secret& key, const Nonce& nonce, uint32_t block) : context_(EVP_CIPHER_CTX_new()) {
  std::array<uint8_t, 16> start;  // OpenSSL's nonce begins with the number of the block, little endian
  for (size_t i = 0; i < 4; ++i) start[i] = static_cast<uint8_t>(block >> (8 * i));
  std::copy(nonce.begin(), nonce.end(), start.begin() + 4);
  check(context_ != nullptr && EVP_EncryptInit_ex(static_cast<EVP_CIPHER_CTX*>(context_), EVP_chacha20(),
                                                  nullptr, key.data(), start.data()) == 1,
        "ChaCha20");
}

KeyStream::~KeyStream() {
  EVP_CIPHER_CTX_free(static_cast<EVP_CIPHER_CTX*>(context_));
}

void KeyStream::next(std::span<uint8_t> bytes) {
  std::fill(bytes.begin(), bytes.end(), uint8_t{0});
  int size = 0;
  check(EVP_EncryptUpdate(static_cast<EVP_CIPHER_CTX*>(context_), bytes.data(), &size, bytes.data(),
                          size_of(bytes)) == 1,
        "ChaCha20");
}

Bytes seal(const Secret& key, std::span<const uint8_t> plain, std::span<const uint8_t> about,
           const Nonce& nonce) {
  const Cipher cipher(EVP_CIPHER_CTX_new());
  Bytes sealed(plain.size() + kTagBytes);
  int size = 0;
  check(
      cipher != nullptr &&
          EVP_EncryptInit_ex(cipher.get(), EVP_chacha20_poly1305(), nullptr, key.data(), nonce.data()) == 1 &&
          EVP_EncryptUpdate(cipher.get(), nullptr, &size, about.data(), size_of(about)) == 1 &&
          EVP_EncryptUpdate(cipher.get(), sealed.data(), &size, plain.data(), size_of(plain)) == 1 &&
          EVP_EncryptFinal_ex(cipher.get(), sealed.data() + plain.size(), &size) == 1 &&
          EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_GET_TAG, kTagBytes, sealed.data() + plain.size()) ==
              1,
      "ChaCha20-Poly1305");
  return sealed;
}

std::optional<Bytes> open_sealed(const Secret& key, std::span<const uint8_t> sealed,
                                 std::span<const uint8_t> about, const Nonce& nonce) {
  if (sealed.size() < kTagBytes) return std::nullopt;
  const std::span<const uint8_t> body = sealed.first(sealed.size() - kTagBytes);
  const Cipher cipher(EVP_CIPHER_CTX_new());
  Bytes plain(body.size());
  Bytes tag(sealed.end() - kTagBytes, sealed.end());
  int size = 0;
  check(
      cipher != nullptr &&
          EVP_DecryptInit_ex(cipher.get(), EVP_chacha20_poly1305(), nullptr, key.data(), nonce.data()) == 1 &&
          EVP_DecryptUpdate(cipher.get(), nullptr, &size, about.data(), size_of(about)) == 1 &&
          EVP_DecryptUpdate(cipher.get(), plain.data(), &size, body.data(), size_of(body)) == 1 &&
          EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_SET_TAG, kTagBytes, tag.data()) == 1,
      "ChaCha20-Poly1305");
  uint8_t none = 0;
  if (EVP_DecryptFinal_ex(cipher.get(), &none, &size) == 1) return plain;
  ERR_clear_error();
  return std::nullopt;
}

}  // namespace bitfed
