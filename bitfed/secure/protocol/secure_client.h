#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "bitfed/base/modular_vector.h"
#include "bitfed/secure/protocol/identity.h"
#include "bitfed/secure/protocol/messages.h"
#include "bitfed/secure/protocol/primitives.h"

namespace bitfed {

// What a client must not forget of a session. Its keys, seeds and shares are functions of the secret; what
// the server has said once it may say again, and nothing else.
struct ClientSession {
  Digest session = {};
  Secret secret = {};
  Bytes key_list;
  Bytes peer_shares;
  Bytes survivors;
};

// The client's side of one sum (Bonawitz et al., "Practical secure aggregation for privacy-preserving machine
// learning", CCS 2017): keys, sealed shares, a masked update, and one answer that helps open the sum of the
// survivors. Every step can be repeated, with the same result. What the server must not ask is an
// input_error, and leaves the session as it was.
class SecureClient {
 public:
  // `identity` must outlive the object. `min_clients`: a sum of fewer is never opened.
  SecureClient(ClientSession session, uint32_t number, const Identity& identity, size_t min_clients);

  // To be stored after every step, before the result of the step leaves the client.
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
    Secret channel = {};  // what both agree on, for the keys of shares
    Secret share_of_self_mask = {};
    Secret share_of_mask_key = {};
  };

  Secret own(const char* purpose) const;
  Secret channel_key(uint32_t from, uint32_t to) const;
  void read_list();
  void read_shares();
  size_t threshold() const;

  ClientSession session_;
  uint32_t number_;
  const Identity* identity_;  // never null
  size_t min_clients_;
  std::vector<uint32_t> members_;
  std::map<uint32_t, Peer>
      holders_;                    // of our shares, who are also those whose shares we hold; with ourselves
  std::vector<uint32_t> sharing_;  // of the holders, those whose shares have come
};

}  // namespace bitfed
