// What a server can tell from all the bytes that it receives in a round.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "bitfed/secure/protocol/secure_client.h"
#include "bitfed/secure/protocol/secure_server.h"

namespace bitfed {
namespace {

constexpr size_t kClients = 4;
const std::vector<ModularField> kFields = {{64, 4}};

// All that the server sees of one round, and the sum that it opens.
struct Transcript {
  std::vector<ModularVector> masked;
  Bytes hidden;  // what it is given for later: wrapped keys of pairs, their checks, sealed shares
  ModularVector sum;
};

Transcript round_of(const std::vector<ModularVector>& updates) {
  const Digest session = session_of("transcript", 1, 0, "");
  const auto nobody = std::make_shared<NoIdentity>();
  std::vector<uint32_t> numbers(kClients);
  std::iota(numbers.begin(), numbers.end(), 0u);
  SecureServer server(session, numbers, 3);
  std::vector<SecureClient> clients;
  for (const uint32_t number : numbers)
    clients.emplace_back(ClientSession{session, random_secret()},
                         std::make_shared<Channel>(random_secret(), "transcript", number, nobody), 3);
  for (const uint32_t n : numbers) server.add_keys(n, clients[n].keys());
  EXPECT_TRUE(server.end_keys());
  Transcript transcript{updates, {}, ModularVector::zero(kFields)};
  for (const uint32_t n : numbers) {
    const Bytes shares = clients[n].shares_for(server.message_for(n));
    for (const auto& [receiver, sent] : read_sent(shares).by_receiver) {
      const auto add = [&](const auto& bytes) {
        transcript.hidden.insert(transcript.hidden.end(), bytes.begin(), bytes.end());
      };
      add(sent.wrapped);
      if (n < receiver) add(sent.check);  // the other one's is the same
      add(sent.sealed);
    }
    server.add_shares(n, shares);
  }
  EXPECT_TRUE(server.end_shares());
  for (const uint32_t n : numbers) {
    clients[n].take_shares(server.message_for(n));
    clients[n].mask(&transcript.masked[n]);
    transcript.sum.add(transcript.masked[n]);
  }
  EXPECT_TRUE(server.end_updates(numbers));
  for (const uint32_t n : numbers) server.add_opened(n, clients[n].open(server.message_for(n)));
  transcript.sum.subtract(server.masks(kFields));
  return transcript;
}

// Pearson's statistic of counts that should be alike; with d + 1 cells its mean is d and its deviation
// sqrt(2 d). The bound is six deviations above: a right protocol fails once in some million runs.
void expect_uniform(const std::vector<uint64_t>& counts, const char* what) {
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  const double expected = all / static_cast<double>(counts.size());
  double statistic = 0;
  for (const uint64_t count : counts) {
    const double off = static_cast<double>(count) - expected;
    statistic += off * off / expected;
  }
  const double freedom = static_cast<double>(counts.size()) - 1;
  EXPECT_LT(statistic, freedom + 6 * std::sqrt(2 * freedom)) << what;
}

// Client 0's update is moved by some amount and client 1's by its opposite: the sum is the same, and nothing
// that the server receives tells the two worlds apart. Elements are of 4 bits, so that all values, and all
// pairs of values of two clients, are met often.
TEST(TranscriptTest, UniformWhateverTheUpdatesAndNothingButTheSum) {
  std::vector<ModularVector> updates(kClients, ModularVector::zero(kFields));
  for (size_t client = 0; client < kClients; ++client) {
    for (uint64_t& value : updates[client].values) value = 3 * client + 1;
  }
  std::vector<ModularVector> moved = updates;
  for (uint64_t& value : moved[0].values) value = (value + 5) & 15;
  for (uint64_t& value : moved[1].values) value = (value - 5) & 15;

  // Per world: values by client, and pairs of clients 0 and 1.
  std::array<std::vector<uint64_t>, 2> pairs = {std::vector<uint64_t>(256), std::vector<uint64_t>(256)};
  for (const bool world : {false, true}) {
    std::vector<std::vector<uint64_t>> counts(kClients, std::vector<uint64_t>(16));
    std::vector<uint64_t> hidden(256);
    for (int run = 0; run < 200; ++run) {
      const Transcript transcript = round_of(world ? moved : updates);
      for (const uint64_t value : transcript.sum.values) ASSERT_EQ(value, (1 + 4 + 7 + 10) & 15);
      for (const uint8_t byte : transcript.hidden) ++hidden[byte];
      for (size_t i = 0; i < 64; ++i) {
        for (size_t client = 0; client < kClients; ++client)
          ++counts[client][transcript.masked[client].values[i]];
        ++pairs[world][16 * transcript.masked[0].values[i] + transcript.masked[1].values[i]];
      }
    }
    for (const auto& of_client : counts) expect_uniform(of_client, "one client's masked update");
    expect_uniform(pairs[world], "two clients' masked updates");
    expect_uniform(hidden, "wrapped keys, checks and sealed shares");
  }
  // The two worlds beside each other: 2 x 256 cells.
  double statistic = 0;
  for (size_t i = 0; i < 256; ++i) {
    const auto a = static_cast<double>(pairs[0][i]);
    const auto b = static_cast<double>(pairs[1][i]);
    statistic += (a - b) * (a - b) / (a + b);
  }
  EXPECT_LT(statistic, 255 + 6 * std::sqrt(2 * 255.0));
}

// The same test finds a mask that is not there.
TEST(TranscriptTest, FindsWhatIsNotMasked) {
  std::vector<uint64_t> counts(16);
  for (int i = 0; i < 12800; ++i) ++counts[i % 16 == 3 ? 4 : i % 16];
  double statistic = 0;
  for (const uint64_t count : counts) statistic += (count - 800.0) * (count - 800.0) / 800.0;
  EXPECT_GT(statistic, 15 + 6 * std::sqrt(30.0));
}

}  // namespace
}  // namespace bitfed
