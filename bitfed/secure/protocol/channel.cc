#include "bitfed/secure/protocol/channel.h"

namespace bitfed {
namespace {

constexpr size_t kMaxAgreed = 1024;  // secrets that are kept

}  // namespace

Channel::Channel(const Secret& key, std::string federation, uint32_t number,
                 std::shared_ptr<const Identity> identity)
    : key_(key), federation_(std::move(federation)), identity_(std::move(identity)), pair_(key) {
  keys_.number = number;
  keys_.channel = pair_.public_key();
  keys_.certificate = identity_->certificate();
  keys_.signature = identity_->sign(signed_text(federation_, keys_));
}

std::string Channel::check(const RoundKeys& keys) const {
  return identity_->check(keys.certificate, signed_text(federation_, keys), keys.signature);
}

Secret Channel::agree(const PublicKey& peer) {
  if (const auto found = agreed_.find(peer); found != agreed_.end()) return found->second;
  if (agreed_.size() >= kMaxAgreed) agreed_.clear();
  return agreed_.emplace(peer, hkdf_extract(pair_.agree(peer), {})).first->second;
}

}  // namespace bitfed
