#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "bitfed/base/byte_io.h"

namespace bitfed {

// The primitives of secure aggregation, by OpenSSL.

using Secret = std::array<uint8_t, 32>;     // a key, a seed, a private key
using PublicKey = std::array<uint8_t, 32>;  // X25519
using Digest = std::array<uint8_t, 32>;     // SHA-256

Secret random_secret();  // of the system's generator
Digest digest_of(std::span<const uint8_t> bytes);

// An X25519 key (RFC 7748). Making one costs as much as an agreement: keep it for many.
class KeyPair {
 public:
  explicit KeyPair(const Secret& private_key);

  const PublicKey& public_key() const { return public_key_; }
  // An input_error for a peer's key that gives the same secret whatever ours is.
  Secret agree(const PublicKey& peer) const;

 private:
  std::shared_ptr<void> key_;  // OpenSSL's
  PublicKey public_key_ = {};
};

// HKDF with SHA-256 (RFC 5869), and its two halves.
Secret hkdf_extract(std::span<const uint8_t> key, std::span<const uint8_t> salt);
void hkdf_expand(const Secret& extracted, std::span<const uint8_t> info, std::span<uint8_t> result);
Bytes hkdf(std::span<const uint8_t> key, std::span<const uint8_t> salt, std::span<const uint8_t> info,
           size_t size);
// A key for one purpose in one context.
Secret derive(const Secret& key, std::string_view purpose, std::span<const uint8_t> context);

// The key stream of ChaCha20 (RFC 8439), from a block on.
using Nonce = std::array<uint8_t, 12>;
class KeyStream {
 public:
  explicit KeyStream(const Secret& key, const Nonce& nonce = {}, uint32_t block = 0);
  ~KeyStream();
  KeyStream(const KeyStream&) = delete;
  KeyStream& operator=(const KeyStream&) = delete;

  void next(std::span<uint8_t> bytes);
  // The stream of another key from its beginning: cheaper than a new object.
  void restart(const Secret& key);

 private:
  void* context_;
};

// ChaCha20-Poly1305 (RFC 8439). A key is for one message: the nonce is 0 unless a test says otherwise.
Bytes seal(const Secret& key, std::span<const uint8_t> plain, std::span<const uint8_t> about,
           const Nonce& nonce = {});
// Empty where the bytes are not what was sealed.
std::optional<Bytes> open_sealed(const Secret& key, std::span<const uint8_t> sealed,
                                 std::span<const uint8_t> about, const Nonce& nonce = {});

}  // namespace bitfed
