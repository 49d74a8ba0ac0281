#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bitfed/secure/protocol/primitives.h"

namespace bitfed {

// What clients and server exchange, as bytes. Readers take untrusted bytes: whatever does not fit is an
// input_error. Numbers of clients ascend, each at most once.

// Which sum this is about: a client makes it of what it knows itself, so that nothing of one round fits
// another.
Digest session_of(const std::string& federation, uint32_t round, uint32_t attempt,
                  const std::string& broadcast_sha256);

std::string text_of(const Digest& session);  // hexadecimal

// A client's keys of one session. The channel key is signed; the digest is bound to the session and to its
// owner by the shares that come with it (see SecureClient).
struct RoundKeys {
  uint32_t number = 0;
  Digest secret = {};      // of its secret of this session: another secret, other masks
  PublicKey channel = {};  // agrees on a secret with each peer; may be that of other sessions
  Bytes certificate;       // who it is, and
  Bytes signature;         // its signature of signed_text()

  bool operator==(const RoundKeys&) const = default;
};
Bytes signed_text(const std::string& federation, const RoundKeys& keys);

Bytes write_keys(const RoundKeys& keys);
RoundKeys read_keys(std::span<const uint8_t> bytes);

// All members of the session, and the keys of those that the receiver shares with, its own included. Their
// certificates and signatures are left out (empty) where the receiver has checked them before.
struct KeyList {
  std::vector<uint32_t> members;
  std::map<uint32_t, RoundKeys> keys;
};
Bytes write_key_list(const KeyList& list);
KeyList read_key_list(std::span<const uint8_t> bytes);

// What a client sends once it has a list of keys.
using PairCheck = std::array<uint8_t, 16>;
struct SentShare {
  Bytes sealed;          // for the neighbour
  Secret wrapped = {};   // for the server: the pair's key under the client's wrap key
  PairCheck check = {};  // of the pair's mask; both say the same
};
struct SentShares {
  Digest self_mask = {};  // of the seed of the mask of its own, so that an opened one can be checked
  Digest wrap_key = {};   // the same
  std::map<uint32_t, SentShare> by_receiver;
};
Bytes write_sent(const SentShares& shares);
SentShares read_sent(std::span<const uint8_t> bytes);

// The sealed shares for a client, by sender.
using SealedShares = std::map<uint32_t, Bytes>;
Bytes write_sealed(const SealedShares& shares);
SealedShares read_sealed(std::span<const uint8_t> bytes);

// The clients whose masked updates are in the sum.
Bytes write_numbers(const std::vector<uint32_t>& numbers);
std::vector<uint32_t> read_numbers(std::span<const uint8_t> bytes);

// A client's share of one secret of each client it holds shares of: of the mask of its own where that client
// is in the sum, else of its wrap key.
using OpenedShares = std::map<uint32_t, Secret>;
Bytes write_opened(const OpenedShares& shares);
OpenedShares read_opened(std::span<const uint8_t> bytes);

}  // namespace bitfed
