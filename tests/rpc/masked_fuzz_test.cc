// A fuzzer that plays one member of a federation whose updates are masked: messages of secure aggregation in
// any phase, among them honest ones, and those with changed bytes. Whatever they are, every round ends, the
// others' updates count at most once, and there are rounds whose sum is opened. BITFED_FUZZ_MESSAGES sets how
// many.

#include <cstdio>
#include <cstdlib>

#include "bitfed/secure/protocol/secure_client.h"
#include "tests/rpc/coordinator_fixture.h"

namespace bitfed {
namespace {

using v1::Secure;

constexpr uint32_t kHostile = 1;
constexpr size_t kMaxRounds = 100;  // until one must have been opened
const std::vector<uint32_t> kAll = {0, 1, 2, 3};

std::string text(const Bytes& bytes) {
  return {bytes.begin(), bytes.end()};
}

// A client as a device would be.
struct Honest {
  FakePeer peer;
  std::shared_ptr<Channel> channel;
  Secret secret = random_secret();  // of the next sum
  std::optional<SecureClient> client;
  uint32_t round = 0;

  explicit Honest(uint32_t number)
      : channel(std::make_shared<Channel>(random_secret(), "f", number, std::make_shared<NoIdentity>())) {}
  uint32_t number() const { return channel->number(); }
  std::string next_keys() const { return text(keys_of(secret, *channel)); }
};

class MaskedFuzzTest : public CoordinatorTest {
 protected:
  MaskedFuzzTest() {
    options_.clients = 4;
    options_.privacy.secure_aggregation = true;
    options_.privacy.min_survivors = 2;
    options_.privacy.phase_seconds = 60;
    options_.policy.deadline_seconds = 60;
    options_.allowance.max = 1e9;
    for (const uint32_t number : kAll) clients_.push_back(std::make_unique<Honest>(number));
  }

  void join(uint32_t number, FakePeer& peer, const std::string& next_keys) {
    coordinator_->opened(peer, "client-" + std::to_string(number), "address");
    FromClient message = hello(number);
    message.mutable_hello()->set_masks(kMaskProtocol);
    coordinator_->received(peer, message);
    FromClient ready;
    ready.mutable_ready()->set_next_keys(next_keys);
    coordinator_->received(peer, ready);
  }
  static FromClient secure(uint32_t round, Secure::Phase phase, const std::string& content) {
    FromClient message;
    message.mutable_secure()->set_phase(phase);
    message.mutable_secure()->set_round(round);
    message.mutable_secure()->set_content(content);
    return message;
  }

  // What an honest client says to a message; nothing, or what is not to be said, is left out.
  std::vector<FromClient> answers(Honest& one, const FromServer& message) {
    const Digest session =
        session_of(store_->federation(), one.round, 0, sha256_hex(std::string_view("broadcast")));
    try {
      if (message.has_work()) {
        one.round = message.work().round();
        one.client.emplace(
            ClientSession{session_of(store_->federation(), one.round, 0, message.work().sha256()),
                          one.secret},
            one.channel, 2);
        one.secret = random_secret();
        if (message.work().keys().empty()) return {secure(one.round, Secure::KEYS, text(one.client->keys()))};
        return {
            secure(one.round, Secure::SHARES, text(one.client->shares_for(bytes_of(message.work().keys()))))};
      }
      if (message.has_verdict() && message.verdict().kind() == Verdict::WANTED) {
        FromClient chunk;
        chunk.set_chunk("update");
        return {chunk};
      }
      if (!message.has_secure()) return {};
      const Bytes content = bytes_of(message.secure().content());
      if (message.secure().phase() == Secure::KEYS)
        return {secure(one.round, Secure::SHARES, text(one.client->shares_for(content)))};
      if (message.secure().phase() == Secure::SHARES) {
        one.client->take_shares(content);
        FromClient offered = offer(one.round, "update");
        offered.mutable_offer()->set_broadcast_sha256(text_of(session));
        return {offered};
      }
      FromClient answer = secure(one.round, Secure::OPENING, text(one.client->open(content)));
      answer.mutable_secure()->set_next_keys(one.next_keys());
      return {answer};
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::kInput) << error.what();
      FromClient failed;
      failed.mutable_failed()->set_round(one.round);
      return {failed};
    }
  }

  std::string edited(std::string bytes) {
    for (size_t edits = 1 + below(3); edits > 0 && !bytes.empty(); --edits)
      bytes[below(bytes.size())] = static_cast<char>(below(256));
    if (below(8) == 0) bytes.resize(below(bytes.size() + 1));
    return bytes;
  }
  // Of an honest message, something else.
  FromClient changed(FromClient message, uint32_t round) {
    if (!message.has_secure()) {
      if (message.has_offer() && below(4) == 0) message.mutable_offer()->set_round(round + below(3) - 1);
      return message;
    }
    Secure& said = *message.mutable_secure();
    switch (below(8)) {
      case 0:
        said.set_phase(static_cast<Secure::Phase>(below(5)));
        break;
      case 1:
        said.set_round(static_cast<uint32_t>(round + below(3) - 1));
        break;
      case 2:
        said.set_attempt(static_cast<uint32_t>(below(3)));
        break;
      case 3:
        said.set_content(edited(said.content()));
        break;
      case 4:
        said.set_next_keys(edited(clients_[kHostile]->next_keys()));
        break;
      case 5:
        said.set_next_keys(clients_[below(4)]->next_keys());
        break;
      default:
        break;
    }
    return message;
  }

  size_t below(size_t end) { return draw_() % end; }

  std::vector<std::unique_ptr<Honest>> clients_;
  std::minstd_rand draw_{17};
};

TEST_F(MaskedFuzzTest, AMemberThatSaysAnythingAtAll) {
  const char* const wanted = std::getenv("BITFED_FUZZ_MESSAGES");
  const size_t count = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 5000;
  start();
  for (const uint32_t number : {0u, 2u, 3u})
    join(number, clients_[number]->peer, clients_[number]->next_keys());
  Honest& hostile = *clients_[kHostile];
  auto peer = std::make_unique<FakePeer>();
  size_t opened = 0;
  size_t rounds = 0;
  size_t sent = 0;
  FromClient last;
  // How many messages a round takes depends on the threads.
  for (uint32_t round = 1; sent < count || (opened == 0 && rounds < kMaxRounds); ++round, ++rounds) {
    if (thread_.joinable()) thread_.join();
    over_ = false;
    store_->begin_round(round, kAll);
    thread_ = std::thread([this, round, &opened] {
      coordinator_->begin_sum(round, 0, kAll, sha256_hex(std::string_view("broadcast")));
      std::vector<uint32_t> answered;
      coordinator_->run_round(round, bytes_of("broadcast"), kAll, [&](const ClientResult& result) {
        store_->put(round, result, "");
        answered.push_back(result.client);
      });
      std::sort(answered.begin(), answered.end());
      EXPECT_EQ(std::adjacent_find(answered.begin(), answered.end()), answered.end());
      if (!answered.empty() && coordinator_->open_sum(round, answered, {{4, 20}}).masks) ++opened;
      over_ = true;
    });
    while (!over_) {
      bool quiet = true;
      for (const uint32_t number : {0u, 2u, 3u}) {
        Honest& one = *clients_[number];
        while (!one.peer.nothing_more()) {
          quiet = false;
          for (const FromClient& message : answers(one, one.peer.next()))
            coordinator_->received(one.peer, message);
        }
      }
      if (peer->ending() || below(64) == 0) {
        coordinator_->closed(*peer, false);
        peer = std::make_unique<FakePeer>();
        join(kHostile, *peer, below(4) > 0 ? hostile.next_keys() : edited(hostile.next_keys()));
      }
      while (!peer->nothing_more()) {
        quiet = false;
        const FromServer said = peer->next();
        if (!said.has_work() && !hostile.client) continue;
        for (const FromClient& message : answers(hostile, said)) {
          last = message;
          coordinator_->received(*peer, below(3) > 0 ? message : changed(message, round));
          ++sent;
        }
      }
      if (below(4) == 0) {
        coordinator_->received(*peer, changed(last, round));
        ++sent;
      }
      if (quiet && below(4) == 0) pass(5);
    }
    store_->save(round, State());
  }
  coordinator_->present(static_cast<uint32_t>(rounds + 1), 3);  // reports a failure of any handler
  EXPECT_EQ(coordinator_->status().waiting_bytes, 0u);
  EXPECT_GT(opened, 0u);
  std::printf("%zu messages, %zu of %zu rounds opened\n", sent, opened, rounds);
}

}  // namespace
}  // namespace bitfed
