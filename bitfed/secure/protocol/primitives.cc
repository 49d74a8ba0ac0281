#include "bitfed/secure/protocol/primitives.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cassert>
#include <initializer_list>
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

// Fetched once: OpenSSL looks EVP_sha256() and its like up again for each use, which takes as long as a short
// message itself.
const EVP_MD* sha256() {
  static EVP_MD* const kDigest = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return kDigest;
}

const EVP_CIPHER* chacha20() {
  static EVP_CIPHER* const kCipher = EVP_CIPHER_fetch(nullptr, "ChaCha20", nullptr);
  return kCipher;
}

const EVP_CIPHER* chacha20_poly1305() {
  static EVP_CIPHER* const kCipher = EVP_CIPHER_fetch(nullptr, "ChaCha20-Poly1305", nullptr);
  return kCipher;
}

using Parts = std::initializer_list<std::span<const uint8_t>>;

// SHA-256 of the parts in sequence. The context is kept: making one takes longer than a short message.
Digest hash_of(std::span<const uint8_t> first, const Parts& rest) {
  thread_local const std::unique_ptr<EVP_MD_CTX, FreeBy<EVP_MD_CTX_free>> kContext(EVP_MD_CTX_new());
  const auto add = [](std::span<const uint8_t> part) {
    return EVP_DigestUpdate(kContext.get(), part.data(), part.size()) == 1;
  };
  Digest digest;
  check(kContext != nullptr && EVP_DigestInit_ex(kContext.get(), sha256(), nullptr) == 1 && add(first) &&
            std::all_of(rest.begin(), rest.end(), add) &&
            EVP_DigestFinal_ex(kContext.get(), digest.data(), nullptr) == 1,
        "SHA-256");
  return digest;
}

// HMAC-SHA-256 (RFC 2104).
Digest hmac(std::span<const uint8_t> key, const Parts& parts) {
  std::array<uint8_t, 64> block = {};
  const Digest short_key = key.size() > block.size() ? digest_of(key) : Digest();
  if (key.size() > block.size()) key = short_key;
  std::copy(key.begin(), key.end(), block.begin());
  for (uint8_t& byte : block) byte ^= 0x36;
  const Digest inner = hash_of(block, parts);
  for (uint8_t& byte : block) byte ^= 0x36 ^ 0x5c;
  const Digest digest = hash_of(block, {inner});
  OPENSSL_cleanse(block.data(), block.size());
  return digest;
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
  return hash_of(bytes, {});
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

Secret hkdf_extract(std::span<const uint8_t> key, std::span<const uint8_t> salt) {
  return hmac(salt, {key});  // no salt is the same as zeros
}

void hkdf_expand(const Secret& extracted, std::span<const uint8_t> info, std::span<uint8_t> result) {
  Digest block = {};
  for (uint8_t number = 1; !result.empty(); ++number) {
    assert(number > 0);  // at most 255 blocks
    const std::span<const uint8_t> before = std::span(block).first(number == 1 ? 0 : block.size());
    block = hmac(extracted, {before, info, std::span(&number, 1)});
    const size_t size = std::min(block.size(), result.size());
    std::copy_n(block.begin(), size, result.begin());
    result = result.subspan(size);
  }
}

Bytes hkdf(std::span<const uint8_t> key, std::span<const uint8_t> salt, std::span<const uint8_t> info,
           size_t size) {
  Bytes result(size);
  hkdf_expand(hkdf_extract(key, salt), info, result);
  return result;
}

Secret derive(const Secret& key, std::string_view purpose, std::span<const uint8_t> context) {
  Bytes info(purpose.begin(), purpose.end());
  info.push_back(0);
  info.insert(info.end(), context.begin(), context.end());
  Secret result;
  hkdf_expand(hkdf_extract(key, {}), info, result);
  return result;
}

KeyStream::KeyStream(const Secret& key, const Nonce& nonce, uint32_t block) : context_(EVP_CIPHER_CTX_new()) {
  std::array<uint8_t, 16> start;  // OpenSSL's nonce begins with the number of the block, little endian
  for (size_t i = 0; i < 4; ++i) start[i] = static_cast<uint8_t>(block >> (8 * i));
  std::copy(nonce.begin(), nonce.end(), start.begin() + 4);
  check(context_ != nullptr && EVP_EncryptInit_ex(static_cast<EVP_CIPHER_CTX*>(context_), chacha20(), nullptr,
                                                  key.data(), start.data()) == 1,
        "ChaCha20");
}

KeyStream::~KeyStream() {
  EVP_CIPHER_CTX_free(static_cast<EVP_CIPHER_CTX*>(context_));
}

void KeyStream::next(std::span<uint8_t> bytes) {
  static std::array<uint8_t, 16384> zeros = {};  // not constant, so that the program's file has none of it
  while (!bytes.empty()) {
    const std::span<uint8_t> piece = bytes.first(std::min(bytes.size(), zeros.size()));
    int size = 0;
    check(EVP_EncryptUpdate(static_cast<EVP_CIPHER_CTX*>(context_), piece.data(), &size, zeros.data(),
                            size_of(piece)) == 1,
          "ChaCha20");
    bytes = bytes.subspan(piece.size());
  }
}

void KeyStream::restart(const Secret& key) {
  const std::array<uint8_t, 16> start = {};
  check(EVP_EncryptInit_ex(static_cast<EVP_CIPHER_CTX*>(context_), nullptr, nullptr, key.data(),
                           start.data()) == 1,
        "ChaCha20");
}

namespace {

// Kept for the next message: making one takes longer than sealing a short one.
EVP_CIPHER_CTX* sealing_context() {
  thread_local const Cipher kContext(EVP_CIPHER_CTX_new());
  check(kContext != nullptr, "ChaCha20-Poly1305");
  return kContext.get();
}

}  // namespace

Bytes seal(const Secret& key, std::span<const uint8_t> plain, std::span<const uint8_t> about,
           const Nonce& nonce) {
  EVP_CIPHER_CTX* const cipher = sealing_context();
  Bytes sealed(plain.size() + kTagBytes);
  int size = 0;
  check(EVP_EncryptInit_ex(cipher, chacha20_poly1305(), nullptr, key.data(), nonce.data()) == 1 &&
            EVP_EncryptUpdate(cipher, nullptr, &size, about.data(), size_of(about)) == 1 &&
            EVP_EncryptUpdate(cipher, sealed.data(), &size, plain.data(), size_of(plain)) == 1 &&
            EVP_EncryptFinal_ex(cipher, sealed.data() + plain.size(), &size) == 1 &&
            EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, kTagBytes, sealed.data() + plain.size()) == 1,
        "ChaCha20-Poly1305");
  return sealed;
}

std::optional<Bytes> open_sealed(const Secret& key, std::span<const uint8_t> sealed,
                                 std::span<const uint8_t> about, const Nonce& nonce) {
  if (sealed.size() < kTagBytes) return std::nullopt;
  const std::span<const uint8_t> body = sealed.first(sealed.size() - kTagBytes);
  EVP_CIPHER_CTX* const cipher = sealing_context();
  Bytes plain(body.size());
  std::array<uint8_t, kTagBytes> tag;
  std::copy(sealed.end() - kTagBytes, sealed.end(), tag.begin());
  int size = 0;
  check(EVP_DecryptInit_ex(cipher, chacha20_poly1305(), nullptr, key.data(), nonce.data()) == 1 &&
            EVP_DecryptUpdate(cipher, nullptr, &size, about.data(), size_of(about)) == 1 &&
            EVP_DecryptUpdate(cipher, plain.data(), &size, body.data(), size_of(body)) == 1 &&
            EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, kTagBytes, tag.data()) == 1,
        "ChaCha20-Poly1305");
  uint8_t none = 0;
  if (EVP_DecryptFinal_ex(cipher, &none, &size) == 1) return plain;
  ERR_clear_error();
  return std::nullopt;
}

}  // namespace bitfed
