#include "bitfed/rpc/device/device_channel.h"

#include "bitfed/rpc/security/certificate_identity.h"

namespace bitfed {
namespace {

constexpr auto kLife = std::chrono::hours(1);
constexpr auto kLeast = std::chrono::minutes(15);  // left of it where keys are sent ahead

int64_t seconds_of(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

}  // namespace

std::shared_ptr<Channel> DeviceChannel::of(const ClientSession& session, const std::string& federation,
                                           uint32_t number) {
  if (session.secret == Secret()) {
    if (channel_ != nullptr && may_begin(seconds_of(until_))) return channel_;
    return begin(federation, number);
  }
  if (channel_ != nullptr && channel_->key() == session.channel) return channel_;
  if (identity_ == nullptr) identity_ = make_certificate_identity(trust_);
  // How old a channel is that an earlier process made is not known: it serves no other sum.
  until_ = {};
  channel_ = std::make_shared<Channel>(session.channel, federation, number, identity_);
  return channel_;
}

std::shared_ptr<Channel> DeviceChannel::begin(const std::string& federation, uint32_t number) {
  if (identity_ == nullptr) identity_ = make_certificate_identity(trust_);
  until_ = now_() + kLife;
  channel_ = std::make_shared<Channel>(random_secret(), federation, number, identity_);
  return channel_;
}

DeviceChannel::Ahead DeviceChannel::ahead(const std::string& federation, uint32_t number) {
  if (channel_ == nullptr || !may_be_sent(seconds_of(until_))) begin(federation, number);
  return {channel_, seconds_of(until_)};
}

// A time too far ahead is that of a clock that was put back.
bool DeviceChannel::may_begin(int64_t until) const {
  return seconds_of(now_()) < until && until <= seconds_of(now_() + kLife);
}

bool DeviceChannel::may_be_sent(int64_t until) const {
  return may_begin(until) && seconds_of(now_() + kLeast) < until;
}

}  // namespace bitfed
