#include "bitfed/rpc/device/device_channel.h"

#include "bitfed/rpc/security/certificate_identity.h"

namespace bitfed {
namespace {

constexpr auto kLife = std::chrono::hours(1);

}  // namespace

std::shared_ptr<Channel> DeviceChannel::of(const ClientSession& session, const std::string& federation,
                                           uint32_t number) {
  const auto now = std::chrono::steady_clock::now();
  const bool begins = session.secret == Secret();
  if (channel_ != nullptr && (begins ? now < until_ : channel_->key() == session.channel)) return channel_;
  if (identity_ == nullptr) identity_ = make_certificate_identity(trust_);
  // How old a channel is that an earlier process made is not known: it serves no other sum.
  until_ = begins ? now + kLife : now;
  channel_ =
      std::make_shared<Channel>(begins ? random_secret() : session.channel, federation, number, identity_);
  return channel_;
}

}  // namespace bitfed
