#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "bitfed/secure/protocol/identity.h"
#include "bitfed/secure/protocol/messages.h"
#include "bitfed/secure/protocol/primitives.h"

namespace bitfed {

// What a client has in common with others of its federation, past the server: shares are sealed and updates
// masked with it. Its key is signed once and serves
// many sums, so that peers check the signature and agree on a secret with it once. Whoever steals it later
// can read the shares, and compute the masks of its pairs, of all of these sums: it should not live long. For
// one thread.
class Channel {
 public:
  Channel(const Secret& key, std::string federation, uint32_t number,
          std::shared_ptr<const Identity> identity);

  const Secret& key() const { return key_; }
  uint32_t number() const { return keys_.number; }

  // Number, channel key, certificate and signature; the rest is the sum's.
  const RoundKeys& keys() const { return keys_; }

  // The name of the peer that these keys are of; an input_error where their signature is not good.
  std::string check(const RoundKeys& keys) const;

  // What both agree on, as HKDF extracts it.
  Secret agree(const PublicKey& peer);

 private:
  Secret key_;
  std::string federation_;
  std::shared_ptr<const Identity> identity_;
  KeyPair pair_;
  RoundKeys keys_;
  std::map<PublicKey, Secret> agreed_;
};

}  // namespace bitfed
