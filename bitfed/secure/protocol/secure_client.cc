#include "bitfed/secure/protocol/secure_client.h"

#include <algorithm>
#include <array>
#include <set>

#include "bitfed/base/error.h"
#include "bitfed/secure/protocol/masks.h"
#include "bitfed/secure/protocol/neighbours.h"
#include "bitfed/secure/protocol/shamir.h"

namespace bitfed {
namespace {

constexpr const char* kWrapKey = "wrap key";
constexpr const char* kSelfMask = "mask of its own";
constexpr const char* kSelfMaskShares = "shares of the mask of its own";
constexpr const char* kWrapKeyShares = "shares of the wrap key";

bool contains(const std::vector<uint32_t>& numbers, uint32_t number) {
  return std::binary_search(numbers.begin(), numbers.end(), number);
}

Bytes copy_of(std::span<const uint8_t> bytes) {
  return {bytes.begin(), bytes.end()};
}

// The server may say a thing again, but not another instead.
void check_repeated(const Bytes& before, std::span<const uint8_t> now, const char* what) {
  if (!before.empty() && !std::equal(before.begin(), before.end(), now.begin(), now.end()))
    throw input_error("the server sends a second, different {} for the same sum: refused", what);
}

RoundKeys round_keys(const Secret& secret, const Channel& channel) {
  RoundKeys keys = channel.keys();
  keys.secret = digest_of(derive(secret, "published", {}));
  return keys;
}

}  // namespace

Bytes keys_of(const Secret& secret, const Channel& channel) {
  return write_keys(round_keys(secret, channel));
}

SecureClient::SecureClient(ClientSession session, std::shared_ptr<Channel> channel, size_t min_clients)
    : session_(std::move(session)),
      channel_(std::move(channel)),
      number_(channel_->number()),
      min_clients_(min_clients) {
  session_.channel = channel_->key();
  if (!session_.key_list.empty()) {
    const std::span<const uint8_t> kept = session_.key_list;
    if (kept.size() < list_digest_.size())
      throw input_error("the state of a sum: found a list of keys of {} bytes: damaged", kept.size());
    std::copy_n(kept.begin(), list_digest_.size(), list_digest_.begin());
    take_list(read_key_list(kept.subspan(list_digest_.size())));
  }
  if (!session_.peer_shares.empty()) read_shares();
}

Secret SecureClient::own(const char* purpose) const {
  return derive(session_.secret, purpose, session_.session);
}

// Another for other members, so that no two sets of holders get shares of one secret, also if the first list
// was forgotten.
Secret SecureClient::own_of_sum(const char* purpose) const {
  return derive(session_.secret, purpose, sum_);
}

Secret SecureClient::noise_seed() const {
  return own("noise");
}

size_t SecureClient::threshold() const {
  return threshold_of(holders_.size());
}

// A list as it was sent. Names and signatures, once checked, are not needed again.
void SecureClient::check_signatures(const KeyList& list) const {
  if (list.keys.size() > kMaxShares)
    throw input_error("the list of keys: found keys of {} clients, expected at most {}: refused",
                      list.keys.size(), kMaxShares);
  std::set<std::string> names;
  for (const auto& [holder, keys] : list.keys) {
    std::string name;
    try {
      name = channel_->check(keys);
    } catch (const Error& error) {
      if (error.kind() != Error::Kind::kInput) throw;
      throw input_error("the list of keys: client {}: {}: refused", holder, error.what());
    }
    if (!name.empty() && !names.insert(name).second)
      throw input_error("the list of keys: found '{}' twice: refused", name);
  }
}

void SecureClient::take_list(const KeyList& list) {
  if (list.members.size() < min_clients_) {
    throw input_error("the list of keys: found {} clients, expected at least {}: refused",
                      list.members.size(), min_clients_);
  }
  if (!contains(list.members, number_))
    throw input_error("the list of keys: found this client {} not among its members: refused", number_);
  const std::vector<uint32_t> holders = Neighbours(session_.session, list.members).holders(number_);
  if (list.keys.size() != holders.size())
    throw input_error("the list of keys: found keys of {} clients, expected {}: refused", list.keys.size(),
                      holders.size());
  const RoundKeys ours = round_keys(session_.secret, *channel_);
  Bytes about(session_.session.begin(), session_.session.end());
  const Bytes numbers = write_numbers(list.members);
  about.insert(about.end(), numbers.begin(), numbers.end());
  const Digest sum = digest_of(about);
  std::map<uint32_t, Peer> peers;
  std::set<PublicKey> known;
  for (const uint32_t holder : holders) {
    const auto found = list.keys.find(holder);
    if (found == list.keys.end())
      throw input_error("the list of keys: found no keys of client {}, a neighbour: refused", holder);
    const RoundKeys& keys = found->second;
    if (!known.insert(keys.channel).second)
      throw input_error("the list of keys: found the key of client {} twice: refused", holder);
    Peer& peer = peers[holder];
    peer.keys = keys;
    if (holder == number_) continue;
    peer.pair = pair_of(channel_->agree(keys.channel), sum, ours, keys);
    peer.mask = mask_of(peer.pair.key);
  }
  const RoundKeys& said = peers.at(number_).keys;
  if (said.secret != ours.secret || said.channel != ours.channel)
    throw input_error("the list of keys: found other keys of this client {}: refused", number_);
  sum_ = sum;
  members_ = list.members;
  holders_ = std::move(peers);
}

Bytes SecureClient::shares_for(std::span<const uint8_t> key_list) {
  KeyList list = read_key_list(key_list);
  check_signatures(list);
  for (auto& [number, keys] : list.keys) {
    keys.certificate.clear();
    keys.signature.clear();
  }
  const Bytes kept = write_key_list(list);
  const Digest digest = digest_of(kept);
  if (!session_.key_list.empty()) {
    if (digest != list_digest_)
      throw input_error("the server sends a second, different list of keys for the same sum: refused");
    return shares();
  }
  take_list(list);
  list_digest_ = digest;
  session_.key_list.assign(digest.begin(), digest.end());
  session_.key_list.insert(session_.key_list.end(), kept.begin(), kept.end());
  return shares();
}

Bytes SecureClient::shares() const {
  const Secret self_mask = own_of_sum(kSelfMask);
  const Secret wrap_key = own_of_sum(kWrapKey);
  const std::vector<Secret> self_mask_shares =
      split_secret(self_mask, holders_.size(), threshold(), own_of_sum(kSelfMaskShares));
  const std::vector<Secret> wrap_key_shares =
      split_secret(wrap_key, holders_.size(), threshold(), own_of_sum(kWrapKeyShares));
  SentShares all{digest_of(self_mask), digest_of(wrap_key), {}};
  size_t next = 0;
  for (const auto& [holder, peer] : holders_) {
    const size_t at = next++;
    if (holder == number_) continue;
    std::array<uint8_t, 2 * sizeof(Secret)> plain;
    std::copy(self_mask_shares[at].begin(), self_mask_shares[at].end(), plain.begin());
    std::copy(wrap_key_shares[at].begin(), wrap_key_shares[at].end(), plain.begin() + sizeof(Secret));
    SentShare& sent = all.by_receiver[holder];
    sent.sealed = seal(number_ < holder ? peer.pair.to_higher : peer.pair.to_lower, plain, {});
    sent.wrapped = wrap(wrap_key, peer.pair.key, peer.keys);
    sent.check = peer.mask.check;
  }
  return write_sent(all);
}

// Our own share is ours already.
void SecureClient::read_shares() {
  const SealedShares sealed = read_sealed(session_.peer_shares);
  std::vector<uint32_t> sharing = {number_};
  std::map<uint32_t, Bytes> opened;
  for (const auto& [sender, bytes] : sealed) {
    const auto found = holders_.find(sender);
    if (found == holders_.end() || sender == number_)
      throw input_error("shares: found some of client {}, which is no neighbour: refused", sender);
    const Pair& pair = found->second.pair;
    auto plain = open_sealed(sender < number_ ? pair.to_higher : pair.to_lower, bytes, {});
    if (!plain || plain->size() != 64)
      throw BrokenShares(sender, fmt::format("shares: those of client {} cannot be opened: refused", sender));
    opened.emplace(sender, std::move(*plain));
    sharing.push_back(sender);
  }
  if (sharing.size() < threshold())
    throw input_error("shares: found those of {} clients, expected at least {}: refused", sharing.size(),
                      threshold());
  std::sort(sharing.begin(), sharing.end());
  for (const auto& [sender, plain] : opened) {
    Peer& peer = holders_.at(sender);
    std::copy(plain.begin(), plain.begin() + 32, peer.share_of_self_mask.begin());
    std::copy(plain.begin() + 32, plain.end(), peer.share_of_wrap_key.begin());
  }
  const auto x = static_cast<uint8_t>(std::distance(holders_.begin(), holders_.find(number_)) + 1);
  Peer& us = holders_.at(number_);
  us.share_of_self_mask = share_at(x, own_of_sum(kSelfMask), threshold(), own_of_sum(kSelfMaskShares));
  us.share_of_wrap_key = share_at(x, own_of_sum(kWrapKey), threshold(), own_of_sum(kWrapKeyShares));
  sharing_ = std::move(sharing);
}

void SecureClient::take_shares(std::span<const uint8_t> peer_shares) {
  if (session_.key_list.empty()) throw input_error("shares: found before the list of keys: refused");
  check_repeated(session_.peer_shares, peer_shares, "set of shares");
  if (!session_.peer_shares.empty()) return;
  session_.peer_shares = copy_of(peer_shares);
  try {
    read_shares();
  } catch (...) {
    session_.peer_shares.clear();
    throw;
  }
}

// Of a pair the lower number adds and the higher takes off.
void SecureClient::mask(ModularVector* update) const {
  apply_mask(own_of_sum(kSelfMask), MaskSign::kAdd, update);
  for (const uint32_t peer : sharing_) {
    if (peer == number_) continue;
    apply_mask(holders_.at(peer).mask.seed, number_ < peer ? MaskSign::kAdd : MaskSign::kSubtract, update);
  }
}

void SecureClient::sends(std::string_view sha256) {
  if (!session_.update.empty() &&
      !std::equal(session_.update.begin(), session_.update.end(), sha256.begin(), sha256.end()))
    throw input_error(
        "this client has sent another update for the same sum, before its samples or its program changed: refused");
  session_.update.assign(sha256.begin(), sha256.end());
}

Bytes SecureClient::open(std::span<const uint8_t> survivors) {
  if (!can_mask()) throw input_error("survivors: found before the shares: refused");
  check_repeated(session_.survivors, survivors, "list of survivors");
  const std::vector<uint32_t> numbers = read_numbers(survivors);
  if (!std::includes(members_.begin(), members_.end(), numbers.begin(), numbers.end()))
    throw input_error("survivors: found one that is not among the members: refused");
  if (!contains(numbers, number_))
    throw input_error("survivors: found this client {} not among them: refused", number_);
  if (numbers.size() < min_clients_)
    throw input_error("survivors: found {}, expected at least {}: refused", numbers.size(), min_clients_);
  OpenedShares opened;
  size_t answering = 0;
  for (const uint32_t peer : sharing_) {
    const bool survives = contains(numbers, peer);
    answering += survives ? 1 : 0;
    opened[peer] = survives ? holders_.at(peer).share_of_self_mask : holders_.at(peer).share_of_wrap_key;
  }
  if (answering < threshold())
    throw input_error("survivors: found {} of this client's neighbours, expected at least {}: refused",
                      answering, threshold());
  if (const size_t least = least_in_sum(members_.size(), holders_.size(), answering); least < min_clients_)
    throw input_error(
        "survivors: found {} of this client's {} neighbours, expected more: others may have been told of other "
        "survivors, and then {} clients could be in the sum, {} must be: refused",
        answering, holders_.size(), least, min_clients_);
  session_.survivors = copy_of(survivors);
  return write_opened(opened);
}

}  // namespace bitfed
