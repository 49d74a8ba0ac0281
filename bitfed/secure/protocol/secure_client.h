#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "bitfed/base/modular_vector.h"
#include "bitfed/secure/protocol/channel.h"
#include "bitfed/secure/protocol/messages.h"
#include "bitfed/secure/protocol/primitives.h"

namespace bitfed {

// What a client must not forget of a session. Its keys, seeds and shares are functions of the secret; what
// the server has said once it may say again, and nothing else.
struct ClientSession {
  Digest session = {};
  Secret secret = {};
  Bytes key_list = {};
  Bytes peer_shares = {};
  Bytes survivors = {};
  Secret channel = {};  // the key of the channel that shares are sealed with
};

// The client's side of one sum (Bonawitz et al., "Practical secure aggregation for privacy-preserving machine
// learning", CCS 2017): keys, sealed shares, a masked update, and one answer that helps open the sum of the
// survivors. Every step can be repeated, with the same result. What the server must not ask is an
// input_error, and leaves the session as it was.
//
// Nobody but the owner of a signed channel key can have sealed shares with it, and they are sealed for one
// session and one set of the sender's other keys: a client masks with a peer's key only after it has opened
// shares that were sealed by the owner of that key, for this sum.
class SecureClient {
 public:
  // The channel's key is that of the session, unless it is a new one. `min_clients`: a sum of fewer is never
  // opened.
  SecureClient(ClientSession session, std::shared_ptr<Channel> channel, size_t min_clients);

  // To be stored after every step, before the result of the step leaves the client. What was opened must be
  // durable by then. A client that forgets another step must forget the later ones as well; it then draws
  // another secret, or other shares, and fits no sum that the first were for.
  const ClientSession& session() const { return session_; }

  Bytes keys() const;
  Bytes shares_for(std::span<const uint8_t> key_list);
  void take_shares(std::span<const uint8_t> peer_shares);
  bool can_mask() const { return !session_.peer_shares.empty(); }
  void mask(ModularVector* update) const;
  Bytes open(std::span<const uint8_t> survivors);

  // What the noise of the masked update is drawn from: the same after a restart, so that no two updates of
  // one sum differ by their noise, and another for every sum.
  Secret noise_seed() const;

 private:
  struct Peer {
    RoundKeys keys;
    Secret share_of_self_mask = {};
    Secret share_of_mask_key = {};
  };

  Secret own(const char* purpose) const;
  Secret own_of_list(const char* purpose) const;
  Secret share_key(const RoundKeys& from, uint32_t to, const PublicKey& peer) const;
  RoundKeys own_keys() const;
  void read_list();
  void read_shares();
  size_t threshold() const;

  ClientSession session_;
  std::shared_ptr<Channel> channel_;
  uint32_t number_;
  size_t min_clients_;
  KeyPair mask_key_;
  Digest list_digest_ = {};  // of the list of keys
  std::vector<uint32_t> members_;
  std::map<uint32_t, Peer>
      holders_;                    // of our shares, who are also those whose shares we hold; with ourselves
  std::vector<uint32_t> sharing_;  // of the holders, those whose shares have come
};

}  // namespace bitfed
