#include "bitfed/secure/protocol/secure_client.h"

#include <algorithm>
#include <set>

#include "bitfed/base/error.h"
#include "bitfed/secure/protocol/masks.h"
#include "bitfed/secure/protocol/neighbours.h"
#include "bitfed/secure/protocol/shamir.h"

namespace bitfed {
namespace {

constexpr const char* kMaskKey = "mask key";
constexpr const char* kSelfMask = "mask of its own";
constexpr const char* kSelfMaskShares = "shares of the mask of its own";
constexpr const char* kMaskKeyShares = "shares of the mask key";

// What sealed shares are bound to.
Bytes about(const Digest& session, const RoundKeys& from, uint32_t to) {
  Bytes text(session.begin(), session.end());
  for (const uint32_t number : {from.number, to}) {
    for (int i = 0; i < 4; ++i) text.push_back(static_cast<uint8_t>(number >> (8 * i)));
  }
  text.insert(text.end(), from.mask.begin(), from.mask.end());
  text.insert(text.end(), from.self_mask.begin(), from.self_mask.end());
  return text;
}

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

}  // namespace

SecureClient::SecureClient(ClientSession session, std::shared_ptr<Channel> channel, size_t min_clients)
    : session_(std::move(session)),
      channel_(std::move(channel)),
      number_(channel_->number()),
      min_clients_(min_clients),
      mask_key_(own(kMaskKey)) {
  session_.channel = channel_->key();
  if (!session_.key_list.empty()) read_list();
  if (!session_.peer_shares.empty()) read_shares();
}

Secret SecureClient::own(const char* purpose) const {
  return derive(session_.secret, purpose, session_.session);
}

// Another for another list of keys, so that no two lists get shares of one polynomial, or two messages under
// one nonce, also if the first was forgotten.
Secret SecureClient::own_of_list(const char* purpose) const {
  return derive(session_.secret, purpose, list_digest_);
}

Secret SecureClient::noise_seed() const {
  return own("noise");
}

RoundKeys SecureClient::own_keys() const {
  RoundKeys keys = channel_->keys();
  keys.mask = mask_key_.public_key();
  keys.self_mask = digest_of(own(kSelfMask));
  return keys;
}

Bytes SecureClient::keys() const {
  return write_keys(own_keys());
}

size_t SecureClient::threshold() const {
  return threshold_of(holders_.size());
}

void SecureClient::read_list() {
  const KeyList list = read_key_list(session_.key_list);
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
  std::map<uint32_t, Peer> peers;
  std::set<std::string> names;
  std::set<PublicKey> known;
  for (const uint32_t holder : holders) {
    const auto found = list.keys.find(holder);
    if (found == list.keys.end())
      throw input_error("the list of keys: found no keys of client {}, a neighbour: refused", holder);
    const RoundKeys& keys = found->second;
    std::string name;
    try {
      name = channel_->check(keys);
    } catch (const Error& error) {
      if (error.kind() != Error::Kind::kInput) throw;
      throw input_error("the list of keys: client {}: {}: refused", holder, error.what());
    }
    if (!name.empty() && !names.insert(name).second)
      throw input_error("the list of keys: found '{}' twice: refused", name);
    if (!known.insert(keys.mask).second || !known.insert(keys.channel).second)
      throw input_error("the list of keys: found a key of client {} twice: refused", holder);
    // Certificate and signature have been checked and are not needed again.
    peers[holder].keys = {.number = keys.number,
                          .mask = keys.mask,
                          .channel = keys.channel,
                          .self_mask = keys.self_mask,
                          .certificate = {},
                          .signature = {}};
  }
  const RoundKeys& ours = peers.at(number_).keys;
  const RoundKeys expected = own_keys();
  if (ours.mask != expected.mask || ours.channel != expected.channel || ours.self_mask != expected.self_mask)
    throw input_error("the list of keys: found other keys of this client {}: refused", number_);
  list_digest_ = digest_of(session_.key_list);
  members_ = list.members;
  holders_ = std::move(peers);
}

// For one message: the shares that a client with these keys sends. The peer is whichever of the two we are
// not.
Secret SecureClient::share_key(const RoundKeys& from, uint32_t to, const PublicKey& peer) const {
  return derive(channel_->agree(peer), "channel", about(session_.session, from, to));
}

Bytes SecureClient::shares_for(std::span<const uint8_t> key_list) {
  check_repeated(session_.key_list, key_list, "list of keys");
  if (session_.key_list.empty()) {
    session_.key_list = copy_of(key_list);
    try {
      read_list();
    } catch (...) {
      session_.key_list.clear();
      throw;
    }
  }
  const std::vector<Secret> self_mask =
      split_secret(own(kSelfMask), holders_.size(), threshold(), own_of_list(kSelfMaskShares));
  const std::vector<Secret> mask_key =
      split_secret(own(kMaskKey), holders_.size(), threshold(), own_of_list(kMaskKeyShares));
  const RoundKeys& ours = holders_.at(number_).keys;
  const Secret drawn = own_of_list("nonce");
  Nonce nonce;
  std::copy_n(drawn.begin(), nonce.size(), nonce.begin());
  SealedShares sealed;
  size_t next = 0;
  for (const auto& [holder, peer] : holders_) {
    const size_t at = next++;
    if (holder == number_) continue;
    Bytes plain(self_mask[at].begin(), self_mask[at].end());
    plain.insert(plain.end(), mask_key[at].begin(), mask_key[at].end());
    Bytes& message = sealed[holder];
    message.assign(nonce.begin(), nonce.end());
    const Bytes closed = seal(share_key(ours, holder, peer.keys.channel), plain, {}, nonce);
    message.insert(message.end(), closed.begin(), closed.end());
  }
  return write_sealed(sealed);
}

// Our own share is ours already.
void SecureClient::read_shares() {
  const SealedShares sealed = read_sealed(session_.peer_shares);
  std::map<uint32_t, Peer> holders = holders_;
  std::vector<uint32_t> sharing = {number_};
  const auto x = static_cast<uint8_t>(std::distance(holders_.begin(), holders_.find(number_)) + 1);
  Peer& us = holders.at(number_);
  us.share_of_self_mask = share_at(x, own(kSelfMask), threshold(), own_of_list(kSelfMaskShares));
  us.share_of_mask_key = share_at(x, own(kMaskKey), threshold(), own_of_list(kMaskKeyShares));
  for (const auto& [sender, bytes] : sealed) {
    const auto found = holders.find(sender);
    if (found == holders.end() || sender == number_)
      throw input_error("shares: found some of client {}, which is no neighbour: refused", sender);
    const RoundKeys& theirs = found->second.keys;
    Nonce nonce = {};
    std::copy_n(bytes.begin(), std::min(nonce.size(), bytes.size()), nonce.begin());
    const auto plain = open_sealed(share_key(theirs, number_, theirs.channel),
                                   std::span(bytes).subspan(std::min(nonce.size(), bytes.size())), {}, nonce);
    if (!plain || plain->size() != 64)
      throw input_error("shares: those of client {} cannot be opened: refused", sender);
    std::copy(plain->begin(), plain->begin() + 32, found->second.share_of_self_mask.begin());
    std::copy(plain->begin() + 32, plain->end(), found->second.share_of_mask_key.begin());
    sharing.push_back(sender);
  }
  if (sharing.size() < threshold())
    throw input_error("shares: found those of {} clients, expected at least {}: refused", sharing.size(),
                      threshold());
  std::sort(sharing.begin(), sharing.end());
  holders_ = std::move(holders);
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
  apply_mask(own(kSelfMask), MaskSign::kAdd, update);
  for (const uint32_t peer : sharing_) {
    if (peer == number_) continue;
    const Secret seed = mask_seed(mask_key_, holders_.at(peer).keys.mask, session_.session);
    apply_mask(seed, number_ < peer ? MaskSign::kAdd : MaskSign::kSubtract, update);
  }
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
    opened[peer] = survives ? holders_.at(peer).share_of_self_mask : holders_.at(peer).share_of_mask_key;
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
