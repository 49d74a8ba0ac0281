#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "bitfed/base/error.h"
#include "bitfed/base/modular_vector.h"
#include "bitfed/secure/protocol/channel.h"
#include "bitfed/secure/protocol/messages.h"
#include "bitfed/secure/protocol/pair.h"
#include "bitfed/secure/protocol/primitives.h"

namespace bitfed {

// What a client must not forget of a session. Its keys, seeds and shares are functions of the secret; what
// the server has said once it may say again, and nothing else.
struct ClientSession {
  Digest session = {};
  Secret secret = {};
  Bytes key_list = {};  // without certificates, which have been checked: its digest, then the list
  Bytes peer_shares = {};
  Bytes survivors = {};
  Bytes update = {};    // the digest of the masked update that leaves the client
  Secret channel = {};  // the key of the channel that shares are sealed with
};

// The shares of a client cannot be opened.
struct BrokenShares : Error {
  BrokenShares(uint32_t from, const std::string& text) : Error(Kind::kInput, text), sender(from) {}
  uint32_t sender;
};

// A client's keys may be sent before the session is known: what they publish of its secret is the same in
// every session. Whatever else comes of the secret differs by the session.
Bytes keys_of(const Secret& secret, const Channel& channel);

// The client's side of one sum (Bonawitz et al., "Practical secure aggregation for privacy-preserving machine
// learning", CCS 2017): keys, sealed shares, a masked update, and one answer that helps open the sum of the
// survivors. Every step can be repeated, with the same result. What the server must not ask is an
// input_error, and leaves the session as it was.
//
// Channels that are signed agree on a secret; of it, the session, its members and what both have published
// come the keys that shares are sealed with and the key of the pair's mask. A client masks with a peer only
// after it has opened shares of it: then both have the same of all this before them. The keys of a client's
// pairs are at the server, hidden by the client's wrap key: if the client is lost its holders open that, for
// this sum alone.
class SecureClient {
 public:
  // The channel's key is that of the session, unless it is a new one. `min_clients`: a sum of fewer is never
  // opened.
  SecureClient(ClientSession session, std::shared_ptr<Channel> channel, size_t min_clients);

  // To be stored after every step, before the result of the step leaves the client. What was opened must be
  // durable by then. A client that forgets another step must forget the later ones as well; it then draws
  // another secret, or other shares, and fits no sum that the first were for.
  const ClientSession& session() const { return session_; }

  Bytes keys() const { return keys_of(session_.secret, *channel_); }
  Bytes shares_for(std::span<const uint8_t> key_list);
  Bytes shares() const;  // the same again
  void take_shares(std::span<const uint8_t> peer_shares);
  bool can_mask() const { return !session_.peer_shares.empty(); }
  void mask(ModularVector* update) const;
  // Before a masked update leaves the client: no other one may, since the masks and the noise of both are the
  // same, and what the client has learned in between would be their difference.
  void sends(std::string_view sha256);
  Bytes open(std::span<const uint8_t> survivors);

  // What the noise of the masked update is drawn from: the same after a restart, so that no two updates of
  // one sum differ by their noise, and another for every sum.
  Secret noise_seed() const;

 private:
  struct Peer {
    RoundKeys keys;
    Pair pair;  // of the two of us; of ourselves none
    PairMask mask;
    Secret share_of_self_mask = {};
    Secret share_of_wrap_key = {};
  };

  Secret own(const char* purpose) const;
  Secret own_of_sum(const char* purpose) const;
  void check_signatures(const KeyList& list) const;
  void take_list(const KeyList& list);
  void read_shares();
  size_t threshold() const;

  ClientSession session_;
  std::shared_ptr<Channel> channel_;
  uint32_t number_;
  size_t min_clients_;
  Digest list_digest_ = {};  // of the list of keys without certificates
  Digest sum_ = {};          // of session and members
  std::vector<uint32_t> members_;
  std::map<uint32_t, Peer>
      holders_;                    // of our shares, who are also those whose shares we hold; with ourselves
  std::vector<uint32_t> sharing_;  // of the holders, those whose shares have come
};

}  // namespace bitfed
