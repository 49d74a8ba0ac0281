#pragma once

#include <chrono>
#include <functional>
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
  using Clock = std::chrono::system_clock;  // the same for the next process
  explicit DeviceChannel(const ClientTrust& trust, std::function<Clock::time_point()> now = Clock::now)
      : trust_(trust), now_(std::move(now)) {}

  // For a sum that begins, if the session has no secret yet, or that goes on.
  std::shared_ptr<Channel> of(const ClientSession& session, const std::string& federation, uint32_t number);
  // Keys can be sent ahead of their sum, which may begin with them while their channel serves, and until when
  // that is, in seconds since 1970. They are sent only with time left, which the server counts on.
  struct Ahead {
    std::shared_ptr<Channel> channel;
    int64_t until = 0;
  };
  Ahead ahead(const std::string& federation, uint32_t number);
  bool may_begin(int64_t until) const;
  bool may_be_sent(int64_t until) const;
  // The certificate may be another from now on.
  void forget() { channel_.reset(), identity_.reset(); }

 private:
  std::shared_ptr<Channel> begin(const std::string& federation, uint32_t number);

  const ClientTrust& trust_;
  std::function<Clock::time_point()> now_;
  std::shared_ptr<const Identity> identity_;
  std::shared_ptr<Channel> channel_;
  Clock::time_point until_;
};

}  // namespace bitfed
