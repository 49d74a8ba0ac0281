#include "bitfed/secure/protocol/secure_server.h"

#include <algorithm>
#include <functional>
#include <random>

#include "bitfed/base/error.h"
#include "bitfed/secure/protocol/masks.h"
#include "bitfed/secure/protocol/neighbours.h"
#include "bitfed/secure/protocol/pair.h"
#include "bitfed/secure/protocol/shamir.h"

namespace bitfed {
namespace {

bool contains(const std::vector<uint32_t>& numbers, uint32_t number) {
  return std::binary_search(numbers.begin(), numbers.end(), number);
}

template <typename Message>
std::vector<uint32_t> senders(const std::map<uint32_t, Message>& messages) {
  std::vector<uint32_t> numbers;
  for (const auto& [number, message] : messages) numbers.push_back(number);
  return numbers;
}

}  // namespace

SecureServer::SecureServer(const Digest& session, std::vector<uint32_t> chosen, size_t min_clients)
    : session_(session), min_clients_(min_clients), members_(std::move(chosen)) {}

std::vector<uint32_t> SecureServer::missing() const {
  std::vector<uint32_t> result;
  for (const uint32_t member : members_) {
    const bool there = phase_ == Phase::kKeys     ? keys_.contains(member)
                       : phase_ == Phase::kShares ? shares_.contains(member)
                                                  : opened_.contains(member);
    if (!there) result.push_back(member);
  }
  return result;
}

bool SecureServer::is_complete() const {
  const size_t there = phase_ == Phase::kKeys     ? keys_.size()
                       : phase_ == Phase::kShares ? shares_.size()
                                                  : opened_.size();
  return there == members_.size();
}

bool SecureServer::has_member(uint32_t client) const {
  return contains(members_, client);
}

bool SecureServer::add_keys(uint32_t client, std::span<const uint8_t> message) {
  RoundKeys keys = read_keys(message);
  if (keys.number != client)
    throw input_error("keys of a round: found those of client {}, expected {}", keys.number, client);
  if (phase_ != Phase::kKeys || !contains(members_, client)) return false;
  return keys_.try_emplace(client, std::move(keys)).second;
}

bool SecureServer::end_keys() {
  std::vector<uint32_t> there = senders(keys_);
  if (phase_ != Phase::kKeys || there.size() < min_clients_) return false;
  const Neighbours neighbours(session_, there);
  for (const uint32_t member : there) holders_[member] = neighbours.holders(member);
  members_ = std::move(there);
  phase_ = Phase::kShares;
  return true;
}

bool SecureServer::add_shares(uint32_t client, std::span<const uint8_t> message) {
  SentShares shares = read_sent(message);
  if (phase_ != Phase::kShares || !contains(members_, client)) return false;
  std::vector<uint32_t> expected = holders_.at(client);
  std::erase(expected, client);
  if (senders(shares.by_receiver) != expected)
    throw input_error("shares for others: found those for {} clients, expected one for each of {} neighbours",
                      shares.by_receiver.size(), expected.size());
  return shares_.try_emplace(client, std::move(shares)).second;
}

// Whether every secret that may be needed has enough holders among those present.
bool SecureServer::enough(const std::vector<uint32_t>& present) const {
  if (present.size() < min_clients_) return false;
  const std::vector<uint32_t>& owners = phase_ == Phase::kShares ? present : masked_;
  return std::all_of(owners.begin(), owners.end(), [&](uint32_t owner) {
    return holders_among(owner, present) >= threshold_of(holders_.at(owner).size());
  });
}

size_t SecureServer::holders_among(uint32_t member, const std::vector<uint32_t>& present) const {
  const std::vector<uint32_t>& holders = holders_.at(member);
  return static_cast<size_t>(std::count_if(holders.begin(), holders.end(),
                                           [&](uint32_t holder) { return contains(present, holder); }));
}

bool SecureServer::end_shares() {
  std::vector<uint32_t> there = senders(shares_);
  if (phase_ != Phase::kShares || !enough(there)) return false;
  masked_ = there;
  members_ = std::move(there);
  phase_ = Phase::kUpdates;
  return true;
}

bool SecureServer::end_updates(const std::vector<uint32_t>& survivors) {
  if (phase_ != Phase::kUpdates || !enough(survivors) ||
      !std::includes(masked_.begin(), masked_.end(), survivors.begin(), survivors.end()))
    return false;
  // Otherwise they would refuse.
  const bool all_answer = std::all_of(survivors.begin(), survivors.end(), [&](uint32_t survivor) {
    const size_t there = holders_among(survivor, survivors);
    return least_in_sum(holders_.size(), holders_.at(survivor).size(), there) >= min_clients_;
  });
  if (!all_answer) return false;
  members_ = survivors;
  phase_ = Phase::kOpening;
  return true;
}

Bytes SecureServer::message_for(uint32_t client, const Channels& known) const {
  if (phase_ == Phase::kOpening) return write_numbers(members_);
  const std::vector<uint32_t>& holders = holders_.at(client);
  if (phase_ == Phase::kShares) {
    KeyList list{members_, {}};
    for (const uint32_t holder : holders) {
      const RoundKeys& keys = keys_.at(holder);
      const auto found = known.find(holder);
      const bool is_known = found != known.end() && found->second == keys.channel;
      list.keys.emplace(holder, is_known ? RoundKeys{holder, keys.secret, keys.channel, {}, {}} : keys);
    }
    return write_key_list(list);
  }
  SealedShares shares;
  for (const uint32_t holder : holders) {
    if (holder != client && contains(masked_, holder))
      shares[holder] = shares_.at(holder).by_receiver.at(client).sealed;
  }
  return write_sealed(shares);
}

void SecureServer::add_channels(uint32_t client, Channels* known) const {
  for (const uint32_t holder : holders_.at(client)) known->insert_or_assign(holder, keys_.at(holder).channel);
}

bool SecureServer::add_opened(uint32_t client, std::span<const uint8_t> message) {
  OpenedShares shares = read_opened(message);
  if (phase_ != Phase::kOpening || !contains(members_, client)) return false;
  std::vector<uint32_t> expected;
  for (const uint32_t holder : holders_.at(client)) {
    if (contains(masked_, holder)) expected.push_back(holder);
  }
  if (senders(shares) != expected)
    throw input_error("opened shares: found those of {} clients, expected one of each of {}", shares.size(),
                      expected.size());
  if (!opened_.try_emplace(client, std::move(shares)).second) return false;
  for (const uint32_t owner : expected) {
    if (++answers_[owner] == threshold_of(holders_.at(owner).size())) ++can_be_opened_;
  }
  return true;
}

bool SecureServer::can_open() const {
  return phase_ == Phase::kOpening && opened_.size() >= min_clients_ && can_be_opened_ == masked_.size();
}

namespace {

constexpr size_t kDraws = 256;  // of enough shares; where n of three are wrong, one of 3^n draws has none

using Share = std::pair<uint8_t, Secret>;  // by its x

Secret joined(std::span<const Share* const> shares) {
  std::map<uint8_t, Secret> by_x;
  for (const Share* share : shares) by_x.insert(*share);
  return join_shares(by_x);
}

// Orders the shares so that the first `threshold` of them give the secret. False: none was found.
bool put_good_first(std::vector<const Share*>* shares, size_t threshold,
                    const std::function<bool(const Secret&)>& fits) {
  if (shares->size() < threshold) return false;
  const auto first_fit = [&] { return fits(joined(std::span(*shares).first(threshold))); };
  if (first_fit()) return true;
  if (shares->size() == threshold) return false;
  for (size_t i = 0; i < threshold; ++i) {
    std::swap((*shares)[i], (*shares)[threshold]);
    if (first_fit()) return true;
    std::swap((*shares)[i], (*shares)[threshold]);
  }
  // Nobody who sends wrong shares knows which will be drawn.
  std::minstd_rand random{std::random_device()()};
  for (size_t draw = 0; draw < kDraws && shares->size() > threshold + 1; ++draw) {
    std::shuffle(shares->begin(), shares->end(), random);
    if (first_fit()) return true;
  }
  return false;
}

}  // namespace

// Shares of holders in `wrong` are taken last, and those that are found to be wrong are added to it.
Secret SecureServer::opened_secret(uint32_t owner, std::set<uint32_t>* wrong,
                                   std::vector<Fault>* faults) const {
  const std::vector<uint32_t>& holders = holders_.at(owner);
  const SentShares& sent = shares_.at(owner);
  const Digest& digest = contains(members_, owner) ? sent.self_mask : sent.wrap_key;
  const auto fits = [&](const Secret& secret) { return digest_of(secret) == digest; };
  std::vector<Share> all;
  for (size_t i = 0; i < holders.size(); ++i) {
    const auto found = opened_.find(holders[i]);
    if (found != opened_.end()) all.emplace_back(static_cast<uint8_t>(i + 1), found->second.at(owner));
  }
  const size_t threshold = threshold_of(holders.size());
  std::vector<const Share*> shares;
  for (const Share& share : all) shares.push_back(&share);
  const auto holder_of = [&](const Share* share) { return holders[share->first - 1]; };
  std::stable_partition(shares.begin(), shares.end(),
                        [&](const Share* share) { return !wrong->contains(holder_of(share)); });
  const std::vector<const Share*> in_order(shares);
  if (!put_good_first(&shares, threshold, fits)) {
    if (faults != nullptr) faults->push_back({{owner}, "the shares of its secret do not fit"});
    throw input_error("the shares of client {}'s secret do not fit: a client has sent wrong ones", owner);
  }
  if (shares == in_order) return joined(std::span(shares).first(threshold));
  const Secret secret = joined(std::span(shares).first(threshold));
  std::vector<uint32_t> named;
  for (size_t i = threshold; i < shares.size(); ++i) {
    std::swap(shares[0], shares[i]);
    if (!fits(joined(std::span(shares).first(threshold)))) named.push_back(holder_of(shares[0]));
    std::swap(shares[0], shares[i]);
  }
  // If hardly any other share fits, errors have cancelled: nobody can be named.
  if (named.size() > 1 && 2 * named.size() > shares.size() - threshold) named.clear();
  for (const uint32_t holder : named) {
    wrong->insert(holder);
    if (faults != nullptr) {
      faults->push_back(
          {{holder, owner},
           fmt::format("its share of client {}'s secret does not fit the others: it has sent a wrong "
                       "one, or was sent one",
                       owner)});
    }
  }
  return secret;
}

SecureServer::Secrets SecureServer::secrets(std::vector<Fault>* faults) const {
  Secrets secrets;
  std::set<uint32_t> wrong;
  for (const uint32_t owner : masked_) secrets[owner] = opened_secret(owner, &wrong, faults);
  return secrets;
}

bool SecureServer::are_neighbours(uint32_t one, uint32_t other) const {
  const auto found = holders_.find(one);
  return one != other && found != holders_.end() && contains(found->second, other);
}

ModularVector SecureServer::masks(const std::vector<ModularField>& fields, const Secrets& secrets,
                                  std::vector<Fault>* faults) const {
  ModularVector sum = ModularVector::zero(fields);
  for (const uint32_t owner : masked_) {
    const Secret& secret = secrets.at(owner);
    const SentShares& sent = shares_.at(owner);
    if (contains(members_, owner)) {
      apply_mask(secret, MaskSign::kAdd, &sum);
      continue;
    }
    // The survivors masked with this client, and its own update, which would cancel that, has not come.
    for (const uint32_t peer : holders_.at(owner)) {
      if (!contains(members_, peer)) continue;
      const SentShare& to_peer = sent.by_receiver.at(peer);
      const PairMask mask = mask_of(wrap(secret, to_peer.wrapped, keys_.at(peer)));
      const PairCheck& check = shares_.at(peer).by_receiver.at(owner).check;
      if (mask.check != check) {
        // Where both have told the same, the lost client has hidden another key than that.
        if (faults != nullptr) {
          faults->push_back({to_peer.check == check ? std::vector{owner} : std::vector{owner, peer},
                             fmt::format("clients {} and {} tell different masks of their pair",
                                         std::min(owner, peer), std::max(owner, peer))});
        }
        throw input_error("clients {} and {} tell different masks of their pair", std::min(owner, peer),
                          std::max(owner, peer));
      }
      apply_mask(mask.seed, peer < owner ? MaskSign::kAdd : MaskSign::kSubtract, &sum);
    }
  }
  return sum;
}

Bytes SecureServer::save() const {
  Bytes bytes(session_.begin(), session_.end());
  const auto put = [&](const Bytes& part) {
    const auto size = static_cast<uint64_t>(part.size());
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<uint8_t>(size >> (8 * i)));
    bytes.insert(bytes.end(), part.begin(), part.end());
  };
  if (phase_ == Phase::kShares) {
    KeyList list{members_, {}};
    for (const uint32_t member : members_) list.keys.emplace(member, keys_.at(member));
    put(write_key_list(list));
  } else {
    put(write_numbers(members_));
  }
  if (phase_ == Phase::kUpdates) {
    for (const uint32_t sender : members_) put(write_sent(shares_.at(sender)));
  }
  return bytes;
}

void SecureServer::restore(std::span<const Bytes> saved) {
  for (const Bytes& bytes : saved) {
    ByteReader reader(bytes, "the state of a sum");
    const auto session = reader.take(session_.size());
    if (!std::equal(session.begin(), session.end(), session_.begin())) continue;  // of an earlier attempt
    const auto take = [&] { return reader.take(reader.u64_le()); };
    if (phase_ == Phase::kKeys) {
      keys_ = read_key_list(take()).keys;
      end_keys();
    } else if (phase_ == Phase::kShares) {
      for (const uint32_t sender : read_numbers(take())) add_shares(sender, take());
      end_shares();
    } else {
      end_updates(read_numbers(take()));
    }
  }
}

}  // namespace bitfed
