#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "bitfed/rpc/security/trust.h"
#include "bitfed/secure/protocol/secure_client.h"

namespace bitfed {

// The channel of a device to others, signed with its certificate's key. It serves the sums of one hour at
// most, so that a device that is stolen tells little of earlier ones; a sum goes on with the channel that it
// was begun with.
class DeviceChannel {
 public:
  explicit DeviceChannel(const ClientTrust& trust) : trust_(trust) {}

  // For a sum that begins, if the session has no secret yet, or that goes on.
  std::shared_ptr<Channel> of(const ClientSession& session, const std::string& federation, uint32_t number);
  // The certificate may be another from now on.
  void forget() { channel_.reset(), identity_.reset(); }

 private:
  const ClientTrust& trust_;
  std::shared_ptr<const Identity> identity_;
  std::shared_ptr<Channel> channel_;
  std::chrono::steady_clock::time_point until_;
};

}  // namespace bitfed
