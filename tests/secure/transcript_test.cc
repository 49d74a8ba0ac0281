// What a server can tell from all the bytes that it receives in a round, one client of which is lost.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "bitfed/secure/protocol/masks.h"
#include "bitfed/secure/protocol/neighbours.h"
#include "bitfed/secure/protocol/secure_client.h"
#include "bitfed/secure/protocol/secure_server.h"
#include "bitfed/secure/protocol/shamir.h"

namespace bitfed {
namespace {

constexpr uint32_t kClients = 6;
constexpr uint32_t kLost = 5;  // its update comes after the survivors were named
constexpr size_t kMinClients = 3;
constexpr size_t kElements = 64;
const std::vector<ModularField> kFields = {{kElements, 4}};

// The mask that a broken client of the test leaves out.
enum class Skips { kNothing, kPairMasks, kSelfMask };

// All that the server receives in one round: what may not depend on anything, byte by byte, and what looks
// random, by its kind; and what it computes of it.
struct Transcript {
  Bytes fixed;  // the messages with zeros where their random parts were
  size_t size = 0;
  Bytes keys, digests, hidden, opened;
  std::vector<ModularVector> residuals;  // updates, without every mask that the server can compute
  ModularVector sum;
};

void append(std::span<const uint8_t> bytes, Bytes* to) {
  to->insert(to->end(), bytes.begin(), bytes.end());
}

// The random parts of a message go to their kind; the rest is fixed.
void receive_keys(const Bytes& message, Transcript* transcript) {
  RoundKeys keys = read_keys(message);
  append(keys.secret, &transcript->digests);
  append(std::span(keys.channel).first(31), &transcript->keys);  // the highest bit of a curve's point is 0
  keys.secret = {};
  keys.channel = {};
  append(write_keys(keys), &transcript->fixed);
  transcript->size += message.size();
}

void receive_shares(uint32_t sender, const Bytes& message, Transcript* transcript) {
  SentShares sent = read_sent(message);
  append(sent.self_mask, &transcript->digests);
  append(sent.wrap_key, &transcript->digests);
  sent.self_mask = sent.wrap_key = {};
  for (auto& [receiver, share] : sent.by_receiver) {
    append(share.wrapped, &transcript->hidden);
    append(share.sealed, &transcript->hidden);
    if (sender < receiver) append(share.check, &transcript->hidden);  // the other one's is the same
    share = {Bytes(share.sealed.size()), {}, {}};
  }
  append(write_sent(sent), &transcript->fixed);
  transcript->size += message.size();
}

void receive_opened(const Bytes& message, Transcript* transcript) {
  OpenedShares opened = read_opened(message);
  for (auto& [owner, share] : opened) {
    append(share, &transcript->opened);
    share = {};
  }
  append(write_opened(opened), &transcript->fixed);
  transcript->size += message.size();
}

class Round {
 public:
  explicit Round(const std::vector<ModularVector>& updates, Skips skips = Skips::kNothing)
      : server_(session_, numbers(kClients), kMinClients) {
    for (uint32_t n = 0; n < kClients; ++n) {
      channels_.push_back(
          std::make_shared<Channel>(random_secret(), "transcript", n, std::make_shared<NoIdentity>()));
      clients_.emplace_back(ClientSession{session_, random_secret()}, channels_.back(), kMinClients);
      const Bytes keys = clients_.back().keys();
      receive_keys(keys, &transcript_);
      keys_.push_back(read_keys(keys));
      server_.add_keys(n, keys);
    }
    EXPECT_TRUE(server_.end_keys());
    for (uint32_t n = 0; n < kClients; ++n) {
      const Bytes shares = clients_[n].shares_for(server_.message_for(n));
      receive_shares(n, shares, &transcript_);
      sent_.push_back(read_sent(shares));
      server_.add_shares(n, shares);
    }
    EXPECT_TRUE(server_.end_shares());
    send_updates(updates, skips);
    open();
    take_off_what_the_server_knows();
  }

  const Transcript& transcript() const { return transcript_; }

 private:
  static std::vector<uint32_t> numbers(uint32_t count) {
    std::vector<uint32_t> result(count);
    std::iota(result.begin(), result.end(), 0u);
    return result;
  }

  void send_updates(const std::vector<ModularVector>& updates, Skips skips) {
    transcript_.residuals = updates;
    transcript_.sum = ModularVector::zero(kFields);
    for (uint32_t n = 0; n < kClients; ++n) {
      ModularVector& update = transcript_.residuals[n];
      clients_[n].take_shares(server_.message_for(n));
      clients_[n].mask(&update);
      if (skips == Skips::kSelfMask && n == kLost) unmask_self(n, &update);
      if (skips == Skips::kPairMasks && n != kLost) unmask_pairs_of_client_0(n, &update);
      if (n != kLost) transcript_.sum.add(update);
    }
  }

  // Both ends of a pair leave its mask out, so that the sum is right all the same. The server takes those
  // with the lost client off itself.
  void unmask_pairs_of_client_0(uint32_t n, ModularVector* update) {
    for (uint32_t peer = 0; peer < kClients; ++peer) {
      if (peer == n || peer == kLost || (n != 0 && peer != 0)) continue;
      Bytes about(session_.begin(), session_.end());
      append(write_numbers(numbers(kClients)), &about);
      const Pair pair =
          pair_of(channels_[n]->agree(keys_[peer].channel), digest_of(about), keys_[n], keys_[peer]);
      apply_mask(mask_of(pair.key).seed, n < peer ? MaskSign::kSubtract : MaskSign::kAdd, update);
    }
  }

  // Only of the lost client: the server takes the others' off itself.
  void unmask_self(uint32_t n, ModularVector* update) {
    Bytes about(session_.begin(), session_.end());
    append(write_numbers(numbers(kClients)), &about);
    const Secret seed = derive(clients_[n].session().secret, "mask of its own", digest_of(about));
    EXPECT_EQ(digest_of(seed), sent_[n].self_mask);
    apply_mask(seed, MaskSign::kSubtract, update);
  }

  void open() {
    EXPECT_TRUE(server_.end_updates(numbers(kLost)));
    for (uint32_t n = 0; n < kLost; ++n) {
      const Bytes opened = clients_[n].open(server_.message_for(n));
      receive_opened(opened, &transcript_);
      for (const auto& [owner, share] : read_opened(opened))
        shares_[owner][static_cast<uint8_t>(n + 1)] = share;
      server_.add_opened(n, opened);
    }
    ASSERT_TRUE(server_.can_open());
    transcript_.sum.subtract(server_.masks(kFields));
  }

  // The survivors' masks of their own, and the pairs of the lost client.
  void take_off_what_the_server_knows() {
    for (auto& [owner, shares] : shares_) {
      while (shares.size() > threshold_of(kClients)) shares.erase(shares.begin());
      const Secret secret = join_shares(shares);
      if (owner != kLost) {
        EXPECT_EQ(digest_of(secret), sent_[owner].self_mask);
        apply_mask(secret, MaskSign::kSubtract, &transcript_.residuals[owner]);
        continue;
      }
      EXPECT_EQ(digest_of(secret), sent_[kLost].wrap_key);
      for (uint32_t peer = 0; peer < kLost; ++peer) {
        const PairMask mask = mask_of(wrap(secret, sent_[kLost].by_receiver.at(peer).wrapped, keys_[peer]));
        apply_mask(mask.seed, MaskSign::kSubtract, &transcript_.residuals[peer]);
        apply_mask(mask.seed, MaskSign::kAdd, &transcript_.residuals[kLost]);
      }
    }
  }

  const Digest session_ = session_of("transcript", 1, 0, "");
  SecureServer server_;
  std::vector<std::shared_ptr<Channel>> channels_;
  std::vector<SecureClient> clients_;
  std::vector<RoundKeys> keys_;
  std::vector<SentShares> sent_;
  std::map<uint32_t, std::map<uint8_t, Secret>> shares_;  // that were opened, by owner and x
  Transcript transcript_;
};

// Whether Pearson's statistic is what `freedom` degrees of freedom give in all but one of some ten million
// cases (Wilson and Hilferty's approximation).
bool is_chance(double statistic, double freedom) {
  const double variance = 2 / (9 * freedom);
  return statistic < freedom * std::pow(1 - variance + 5.2 * std::sqrt(variance), 3);
}

bool is_uniform(const std::vector<uint64_t>& counts) {
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  const double expected = all / static_cast<double>(counts.size());
  double statistic = 0;
  for (const uint64_t count : counts) {
    const double off = static_cast<double>(count) - expected;
    statistic += off * off / expected;
  }
  return is_chance(statistic, static_cast<double>(counts.size()) - 1);
}

bool are_alike(const std::vector<uint64_t>& left, const std::vector<uint64_t>& right) {
  double statistic = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    const auto a = static_cast<double>(left[i]);
    const auto b = static_cast<double>(right[i]);
    if (a + b > 0) statistic += (a - b) * (a - b) / (a + b);
  }
  return is_chance(statistic, static_cast<double>(left.size()) - 1);
}

// What many rounds of the same updates look like.
struct World {
  std::array<std::vector<uint64_t>, 4> bytes;  // keys, digests, hidden, opened
  std::vector<std::vector<uint64_t>> values = std::vector(kClients, std::vector<uint64_t>(16));
  std::vector<uint64_t> pairs = std::vector<uint64_t>(256);      // clients 0 and 1
  std::vector<uint64_t> with_lost = std::vector<uint64_t>(256);  // clients 0 and the lost one
  Bytes fixed;
};

World world_of(const std::vector<ModularVector>& updates, int runs, Skips skips = Skips::kNothing) {
  World world;
  world.bytes.fill(std::vector<uint64_t>(256));
  for (int run = 0; run < runs; ++run) {
    const Round round(updates, skips);
    const Transcript& transcript = round.transcript();
    EXPECT_EQ(transcript.sum.values, std::vector<uint64_t>(kElements, (1 + 4 + 7 + 10 + 13) & 15));
    EXPECT_EQ(transcript.fixed.size(), transcript.size);
    if (run == 0) world.fixed = transcript.fixed;
    EXPECT_EQ(transcript.fixed, world.fixed);
    const Bytes* of_kind[] = {&transcript.keys, &transcript.digests, &transcript.hidden, &transcript.opened};
    for (size_t kind = 0; kind < world.bytes.size(); ++kind) {
      for (const uint8_t byte : *of_kind[kind]) ++world.bytes[kind][byte];
    }
    const std::vector<ModularVector>& seen = transcript.residuals;
    for (size_t i = 0; i < kElements; ++i) {
      for (size_t client = 0; client < kClients; ++client) ++world.values[client][seen[client].values[i]];
      ++world.pairs[16 * seen[0].values[i] + seen[1].values[i]];
      ++world.with_lost[16 * seen[0].values[i] + seen[kLost].values[i]];
    }
  }
  return world;
}

std::vector<ModularVector> some_updates() {
  std::vector<ModularVector> updates(kClients, ModularVector::zero(kFields));
  for (size_t client = 0; client < kClients; ++client) {
    for (uint64_t& value : updates[client].values) value = (3 * client + 1) & 15;
  }
  return updates;
}

// Client 0's update is moved by some amount and client 1's by its opposite, and the lost client's is another:
// the sum is the same, and nothing that the server receives tells the two worlds apart, also once it has
// taken off all masks that it can compute. Elements are of 4 bits, so that all values, and all pairs of
// values of two clients, are met often.
TEST(TranscriptTest, UniformWhateverTheUpdatesAndNothingButTheSum) {
  const std::vector<ModularVector> updates = some_updates();
  std::vector<ModularVector> moved = updates;
  for (uint64_t& value : moved[0].values) value = (value + 5) & 15;
  for (uint64_t& value : moved[1].values) value = (value - 5) & 15;
  for (uint64_t& value : moved[kLost].values) value = (value + 9) & 15;

  const World worlds[] = {world_of(updates, 200), world_of(moved, 200)};
  for (const World& world : worlds) {
    for (size_t kind = 0; kind < world.bytes.size(); ++kind)
      EXPECT_TRUE(is_uniform(world.bytes[kind])) << kind;
    for (size_t client = 0; client < kClients; ++client)
      EXPECT_TRUE(is_uniform(world.values[client])) << client;
    EXPECT_TRUE(is_uniform(world.pairs));
    EXPECT_TRUE(is_uniform(world.with_lost));
  }
  EXPECT_EQ(worlds[0].fixed, worlds[1].fixed);
  for (size_t kind = 0; kind < worlds[0].bytes.size(); ++kind)
    EXPECT_TRUE(are_alike(worlds[0].bytes[kind], worlds[1].bytes[kind])) << kind;
  EXPECT_TRUE(are_alike(worlds[0].pairs, worlds[1].pairs));
  EXPECT_TRUE(are_alike(worlds[0].with_lost, worlds[1].with_lost));
}

// The same test finds clients that leave a mask out, though the sum is right.
TEST(TranscriptTest, FindsASkippedMask) {
  const World without_pairs = world_of(some_updates(), 50, Skips::kPairMasks);
  EXPECT_FALSE(is_uniform(without_pairs.values[0]));
  EXPECT_FALSE(is_uniform(without_pairs.pairs));
  EXPECT_TRUE(is_uniform(without_pairs.values[1]));  // which has masks with others
  const World without_self = world_of(some_updates(), 50, Skips::kSelfMask);
  EXPECT_FALSE(is_uniform(without_self.values[kLost]));
  EXPECT_FALSE(is_uniform(without_self.with_lost));
  EXPECT_TRUE(is_uniform(without_self.pairs));
}

}  // namespace
}  // namespace bitfed
