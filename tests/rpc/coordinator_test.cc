#include "bitfed/rpc/server/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "bitfed/base/error.h"
#include "bitfed/base/hash/digest.h"
#include "bitfed_v1.pb.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using v1::FromClient;
using v1::FromServer;
using v1::Verdict;

constexpr auto kLongest = std::chrono::seconds(20);  // that a test waits for anything

// A client that does what the test says, and remembers what it is told.
class FakePeer : public Peer {
 public:
  void send(const FromServer& message) override { send(message, nullptr); }
  void send(const FromServer& head, std::shared_ptr<const Bytes> bytes) override {
    const std::lock_guard lock(mutex_);
    messages_.push_back(head);
    if (bytes != nullptr) broadcast_ = *bytes;
    wake_.notify_all();
  }
  void end(Ending ending, const std::string& text) override {
    const std::lock_guard lock(mutex_);
    ending_ = ending;
    text_ = text;
    wake_.notify_all();
  }
  void cut() override {
    const std::lock_guard lock(mutex_);
    cut_ = true;
  }

  // Waits for the next message.
  FromServer next() {
    std::unique_lock lock(mutex_);
    if (!wake_.wait_for(lock, kLongest, [&] { return read_ < messages_.size(); })) {
      ADD_FAILURE() << "no message: " << text_;
      return {};
    }
    return messages_[read_++];
  }
  bool nothing_more() {
    std::unique_lock lock(mutex_);
    return read_ == messages_.size();
  }
  std::optional<Ending> ending() {
    const std::lock_guard lock(mutex_);
    return ending_;
  }
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  bool was_cut() {
    const std::lock_guard lock(mutex_);
    return cut_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<FromServer> messages_;
  size_t read_ = 0;
  Bytes broadcast_;
  std::optional<Ending> ending_;
  std::string text_;
  bool cut_ = false;
};

Bytes bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

class CoordinatorTest : public testing::Test {
 protected:
  CoordinatorTest() {
    options_.clients = 3;
    options_.policy.minimum_clients = 1;
    options_.recipe = "recipe";
    options_.seed = 5;
    options_.prototype.columns = {"a"};
    options_.prototype.class_names = {"x", "y"};
    options_.most_update_bytes = 100;
    options_.hello_seconds = 0.2;
    options_.silence_seconds = 0.2;
    options_.stop = [this] { return stop_.load(); };
  }
  ~CoordinatorTest() override {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  void start() {
    store_ = std::make_unique<FederationStore>(folder_ / "federation.sqlite");
    coordinator_ = std::make_unique<Coordinator>(options_, *store_, [this](const Event& event) {
      if (const auto* fault = std::get_if<ClientFault>(&event)) faults_.push_back(fault->kind);
      if (const auto* lost = std::get_if<ClientLost>(&event)) lost_.push_back(lost->client);
    });
  }

  static FromClient hello(std::optional<uint32_t> part) {
    FromClient message;
    message.mutable_hello()->set_least_protocol(1);
    message.mutable_hello()->set_most_protocol(1);
    if (part) message.mutable_hello()->set_part(*part);
    return message;
  }

  // A client that is there and ready.
  void connect(FakePeer& peer, const std::string& name, uint32_t part) {
    coordinator_->opened(peer, name, "address");
    coordinator_->received(peer, hello(part));
    ASSERT_EQ(peer.next().welcome().number(), part);
    FromClient ready;
    ready.mutable_ready()->set_samples(10);
    coordinator_->received(peer, ready);
  }

  // Begins a round on a thread of its own, as the federation would.
  void begin(uint32_t round, const std::vector<uint32_t>& clients) {
    if (thread_.joinable()) thread_.join();
    over_ = false;
    store_->begin_round(round, clients);
    thread_ = std::thread([this, round, clients] {
      coordinator_->run_round(round, bytes_of("broadcast"), clients, [&](const ClientResult& result) {
        if (result.upload == bytes_of("misfit")) throw input_error("it does not fit");
        store_->put(round, result, "");
        received_.push_back(result.client);
      });
      over_ = true;
    });
  }
  void finish_round(uint32_t round) {
    thread_.join();
    store_->save(round, State());
  }

  FromClient offer(uint32_t round, const std::string& update) {
    FromClient message;
    v1::Offer& made = *message.mutable_offer();
    made.set_round(round);
    made.set_broadcast_sha256(sha256_hex(std::string_view("broadcast")));
    made.set_size(update.size());
    made.set_sha256(sha256_hex(std::string_view(update)));
    return message;
  }
  void send_chunk(FakePeer& peer, const std::string& chunk) {
    FromClient message;
    message.set_chunk(chunk);
    coordinator_->received(peer, message);
  }
  Verdict verdict(FakePeer& peer, const FromClient& offered) {
    coordinator_->received(peer, offered);
    return peer.next().verdict();
  }
  // Work has come; answers it and returns the last verdict.
  Verdict answer(FakePeer& peer, uint32_t round, const std::string& update) {
    EXPECT_EQ(peer.next().work().round(), round);
    const Verdict first = verdict(peer, offer(round, update));
    if (first.kind() != Verdict::WANTED) return first;
    send_chunk(peer, update);
    return peer.next().verdict();
  }

  TemporaryFolder folder_;
  CoordinatorOptions options_;
  std::unique_ptr<FederationStore> store_;
  std::unique_ptr<Coordinator> coordinator_;
  std::vector<std::string> faults_;
  std::vector<uint32_t> lost_;
  std::vector<uint32_t> received_;
  std::thread thread_;
  std::atomic<bool> over_ = false;
  std::atomic<bool> stop_ = false;
};

TEST_F(CoordinatorTest, WelcomesAndWaits) {
  options_.policy.minimum_clients = 2;
  start();
  FakePeer first, second;
  coordinator_->opened(first, "ann", "address");
  coordinator_->received(first, hello(2));
  const v1::Welcome welcome = first.next().welcome();
  EXPECT_EQ(welcome.number(), 2u);
  EXPECT_EQ(welcome.protocol(), 1u);
  EXPECT_EQ(welcome.federation(), store_->federation());
  EXPECT_EQ(welcome.recipe(), "recipe");
  EXPECT_EQ(welcome.seed(), 5u);
  EXPECT_EQ(welcome.prototype().columns(0), "a");
  EXPECT_EQ(welcome.prototype().class_names(1), "y");
  FromClient ready;
  ready.mutable_ready();
  coordinator_->received(first, ready);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    connect(second, "bob", 0);
  });
  EXPECT_THAT(coordinator_->present(1, 3), ElementsAre(0, 2));
  later.join();
}

TEST_F(CoordinatorTest, ARoundTakesEveryUpdateOnce) {
  start();
  FakePeer ann, bob;
  connect(ann, "ann", 0);
  connect(bob, "bob", 1);
  begin(1, {0, 1});
  EXPECT_EQ(answer(ann, 1, "one").kind(), Verdict::ACCEPTED);
  // Again, as after a lost verdict; and something else in its place.
  EXPECT_EQ(verdict(ann, offer(1, "one")).kind(), Verdict::ACCEPTED);
  EXPECT_EQ(verdict(ann, offer(1, "other")).kind(), Verdict::REFUSED);
  EXPECT_FALSE(over_);
  EXPECT_EQ(answer(bob, 1, "two").kind(), Verdict::ACCEPTED);
  finish_round(1);
  EXPECT_THAT(received_, ElementsAre(0, 1));
  // Long after the round a repeat is still the same update, and anything else late.
  EXPECT_EQ(verdict(ann, offer(1, "one")).kind(), Verdict::ACCEPTED);
  EXPECT_EQ(verdict(bob, offer(1, "other")).kind(), Verdict::REFUSED);
  EXPECT_EQ(verdict(bob, offer(0, "older")).kind(), Verdict::DISCARDED);
  EXPECT_THAT(faults_, ElementsAre("conflict", "conflict", "late"));
}

TEST_F(CoordinatorTest, WhatDoesNotFitIsRefusedAndTheRoundGoesOn) {
  start();
  FakePeer ann, bob, cem;
  connect(ann, "ann", 0);
  connect(bob, "bob", 1);
  connect(cem, "cem", 2);
  begin(1, {0, 1, 2});
  EXPECT_THAT(answer(ann, 1, "misfit").reason(), HasSubstr("it does not fit"));
  EXPECT_THAT(answer(bob, 1, std::string(101, 'x')).reason(),
              HasSubstr("found 101 bytes, expected at most 100"));
  EXPECT_FALSE(over_);
  EXPECT_EQ(answer(cem, 1, "fine").kind(), Verdict::ACCEPTED);
  finish_round(1);
  EXPECT_THAT(received_, ElementsAre(2));
  EXPECT_THAT(faults_, ElementsAre("rejected", "oversized"));
}

TEST_F(CoordinatorTest, BytesThatAreNotTheirDigest) {
  start();
  FakePeer ann;
  connect(ann, "ann", 0);
  begin(1, {0});
  ann.next();
  EXPECT_EQ(verdict(ann, offer(1, "good")).kind(), Verdict::WANTED);
  send_chunk(ann, "gooe");
  EXPECT_THAT(ann.next().verdict().reason(), HasSubstr("found bytes with the digest"));
  thread_.join();
  EXPECT_TRUE(received_.empty());
}

TEST_F(CoordinatorTest, ViolationsEndTheConnectionAlone) {
  start();
  const auto violates = [&](const std::function<void(FakePeer&)>& what, const char* text) {
    FakePeer peer;
    coordinator_->opened(peer, "ann", "address");
    what(peer);
    EXPECT_EQ(peer.ending(), Ending::kViolation);
    EXPECT_THAT(peer.text(), HasSubstr(text));
    coordinator_->closed(peer, false);
  };
  const auto say = [&](FakePeer& peer, const FromClient& message) { coordinator_->received(peer, message); };
  violates([&](FakePeer& peer) { say(peer, offer(1, "x")); }, "expected hello first");
  violates([&](FakePeer& peer) { say(peer, {}); }, "expected hello first");
  violates(
      [&](FakePeer& peer) {
        say(peer, hello(0));
        say(peer, hello(0));
      },
      "hello twice");
  violates(
      [&](FakePeer& peer) {
        say(peer, hello(0));
        send_chunk(peer, "x");
      },
      "nobody asked for");
  violates(
      [&](FakePeer& peer) {
        say(peer, hello(0));
        say(peer, {});
      },
      "does not know");
  begin(1, {0});
  violates(
      [&](FakePeer& peer) {
        say(peer, hello(0));
        while (peer.nothing_more()) std::this_thread::yield();
        FromClient offered = offer(1, "long");
        // The round may not have begun on its thread yet; then the offer waits.
        say(peer, offered);
        peer.next();
        peer.next();
        send_chunk(peer, "longer");
      },
      "found 6 bytes more after 0 of the 4");
  FakePeer again;
  connect(again, "ann", 0);
  EXPECT_EQ(answer(again, 1, "good").kind(), Verdict::ACCEPTED);
}

TEST_F(CoordinatorTest, WhoMayNotTakePart) {
  start();
  const auto refused = [&](const std::string& name, const FromClient& message, const char* text) {
    FakePeer peer;
    coordinator_->opened(peer, name, "address");
    coordinator_->received(peer, message);
    EXPECT_THAT(peer.text(), HasSubstr(text));
    EXPECT_TRUE(peer.ending() == Ending::kRefused || peer.ending() == Ending::kViolation);
    coordinator_->closed(peer, false);
  };
  FromClient old = hello(0);
  old.mutable_hello()->set_least_protocol(0);
  old.mutable_hello()->set_most_protocol(0);
  refused("ann", old, "speaks protocol 1 to 1, this client 0 to 0: update the client");
  FromClient young = hello(0);
  young.mutable_hello()->set_least_protocol(7);
  young.mutable_hello()->set_most_protocol(9);
  refused("ann", young, "update the server");
  FromClient foreign = hello(0);
  foreign.mutable_hello()->set_federation("another");
  refused("ann", foreign, "the client's state belongs to another");
  refused("ann", hello(3), "expected 0 to 2");
  refused("", hello(0), "a client's name");
  refused("two\nlines", hello(0), "a client's name");
  FakePeer peer;
  connect(peer, "ann", 0);
  refused("bob", hello(0), "is that of client 'ann'");
}

TEST_F(CoordinatorTest, AnUpdateOfAnotherRoundOrBroadcast) {
  start();
  FakePeer ann, bob;
  connect(ann, "ann", 0);
  connect(bob, "bob", 1);
  begin(4, {0});
  EXPECT_EQ(ann.next().work().round(), 4u);
  FromClient other = offer(4, "x");
  other.mutable_offer()->set_broadcast_sha256(sha256_hex(std::string_view("another")));
  EXPECT_EQ(verdict(ann, other).kind(), Verdict::DISCARDED);
  EXPECT_EQ(verdict(ann, offer(5, "x")).kind(), Verdict::DISCARDED);
  EXPECT_EQ(verdict(bob, offer(4, "x")).kind(), Verdict::DISCARDED);  // not chosen
  EXPECT_EQ(verdict(ann, offer(4, "x")).kind(), Verdict::WANTED);
  send_chunk(ann, "x");
  EXPECT_EQ(ann.next().verdict().kind(), Verdict::ACCEPTED);
}

TEST_F(CoordinatorTest, QuorumEndsTheRound) {
  options_.policy.quorum = 0.5;
  start();
  FakePeer ann, bob, cem;
  connect(ann, "ann", 0);
  connect(bob, "bob", 1);
  connect(cem, "cem", 2);
  begin(1, {0, 1, 2});
  EXPECT_EQ(answer(ann, 1, "one").kind(), Verdict::ACCEPTED);
  EXPECT_EQ(cem.next().work().round(), 1u);
  EXPECT_EQ(verdict(cem, offer(1, "three")).kind(), Verdict::WANTED);
  EXPECT_EQ(answer(bob, 1, "two").kind(), Verdict::ACCEPTED);
  finish_round(1);
  EXPECT_THAT(lost_, ElementsAre(2));
  // What was on its way comes to its end, and is late.
  send_chunk(cem, "three");
  EXPECT_THAT(coordinator_->present(2, 3), ElementsAre(0, 1, 2));
  EXPECT_EQ(cem.next().verdict().kind(), Verdict::DISCARDED);
  EXPECT_THAT(faults_, ElementsAre("late"));
}

TEST_F(CoordinatorTest, TheDeadlineEndsTheRoundWithEnoughAnswers) {
  options_.policy.deadline_seconds = 0.3;
  options_.policy.min_answers = 2;
  start();
  FakePeer ann, bob;
  connect(ann, "ann", 0);
  connect(bob, "bob", 1);
  begin(1, {0, 1, 2});  // 2 has gone
  EXPECT_EQ(answer(ann, 1, "one").kind(), Verdict::ACCEPTED);
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  EXPECT_FALSE(over_);
  EXPECT_EQ(answer(bob, 1, "two").kind(), Verdict::ACCEPTED);
  finish_round(1);
  EXPECT_THAT(lost_, ElementsAre(2));
}

TEST_F(CoordinatorTest, WhoComesBackIsGivenTheWorkAgain) {
  start();
  FakePeer ann, again;
  connect(ann, "ann", 0);
  begin(1, {0});
  EXPECT_EQ(ann.next().work().round(), 1u);
  EXPECT_EQ(verdict(ann, offer(1, "one")).kind(), Verdict::WANTED);
  send_chunk(ann, "o");
  connect(again, "ann", 0);
  EXPECT_EQ(ann.ending(), Ending::kReplaced);
  coordinator_->closed(ann, false);
  EXPECT_EQ(answer(again, 1, "one").kind(), Verdict::ACCEPTED);
  finish_round(1);
  EXPECT_THAT(received_, ElementsAre(0));
}

TEST_F(CoordinatorTest, AnUpdateThatWaitsForItsRound) {
  start();
  FakePeer ann;
  coordinator_->opened(ann, "ann", "address");
  coordinator_->received(ann, hello(0));
  ann.next();
  // As after a crash of the server: the client comes before the round has begun again.
  coordinator_->received(ann, offer(1, "one"));
  EXPECT_TRUE(ann.nothing_more());
  begin(1, {0});
  EXPECT_EQ(ann.next().verdict().kind(), Verdict::WANTED);
  send_chunk(ann, "one");
  EXPECT_EQ(ann.next().verdict().kind(), Verdict::ACCEPTED);
}

TEST_F(CoordinatorTest, AClientThatCannot) {
  start();
  FakePeer ann, bob;
  connect(ann, "ann", 0);
  connect(bob, "bob", 1);
  begin(1, {0, 1});
  EXPECT_EQ(ann.next().work().round(), 1u);
  FromClient failed;
  failed.mutable_failed()->set_round(1);
  failed.mutable_failed()->set_reason("diverged");
  coordinator_->received(ann, failed);
  EXPECT_EQ(answer(bob, 1, "two").kind(), Verdict::ACCEPTED);
  finish_round(1);
  EXPECT_THAT(received_, ElementsAre(1));
  EXPECT_THAT(faults_, ElementsAre("failed"));
}

TEST_F(CoordinatorTest, RoomForUpdatesIsBounded) {
  options_.most_waiting_bytes = 150;
  start();
  FakePeer ann, bob;
  connect(ann, "ann", 0);
  connect(bob, "bob", 1);
  begin(1, {0, 1});
  ann.next();
  bob.next();
  const std::string large(100, 'a');
  EXPECT_EQ(verdict(ann, offer(1, large)).kind(), Verdict::WANTED);
  coordinator_->received(bob, offer(1, large));
  EXPECT_TRUE(bob.nothing_more());
  send_chunk(ann, large);
  EXPECT_EQ(ann.next().verdict().kind(), Verdict::ACCEPTED);
  EXPECT_EQ(bob.next().verdict().kind(), Verdict::WANTED);
  send_chunk(bob, large);
  EXPECT_EQ(bob.next().verdict().kind(), Verdict::ACCEPTED);
}

// Whatever a client sends, in whatever order: its connection may end, the round and the others do not.
TEST_F(CoordinatorTest, NonsenseHarmsNobodyElse) {
  options_.allowance.most = 1e9;
  start();
  FakePeer ann;
  connect(ann, "ann", 0);
  begin(1, {0, 1});
  const std::vector<FromClient> parts = [&] {
    FromClient chunk, ready, failed, part = hello(1), other = hello(2), wrong = offer(1, "misfit");
    chunk.set_chunk("abc");
    ready.mutable_ready()->set_samples(UINT64_MAX);
    failed.mutable_failed()->set_round(7);
    wrong.mutable_offer()->set_size(UINT64_MAX);
    return std::vector<FromClient>{chunk, ready,           failed,          part, other,
                                   wrong, offer(1, "abc"), offer(9, "abc"), {}};
  }();
  std::minstd_rand draw(5);
  for (int i = 0; i < 400; ++i) {
    FakePeer peer;
    coordinator_->opened(peer, "bob", "address");
    for (int step = 0; step < 12; ++step) {
      FromClient message = parts[draw() % parts.size()];
      std::string bytes = message.SerializeAsString();
      if (draw() % 3 == 0 && !bytes.empty())
        bytes[draw() % bytes.size()] ^= static_cast<char>(1 << draw() % 8);
      if (draw() % 9 == 0) bytes.resize(draw() % (bytes.size() + 1));
      // What protobuf refuses never comes so far.
      if (message.ParseFromString(bytes)) coordinator_->received(peer, message);
    }
    coordinator_->closed(peer, draw() % 2 == 0);
  }
  EXPECT_EQ(answer(ann, 1, "one").kind(), Verdict::ACCEPTED);
  FakePeer bob;
  coordinator_->opened(bob, "bob", "address");
  coordinator_->closed(bob, true);
  EXPECT_EQ(coordinator_->status().connections, 1u);
  EXPECT_EQ(store_->accepted(1, 0), sha256_hex(std::string_view("one")));
  EXPECT_FALSE(faults_.empty());
}

TEST_F(CoordinatorTest, SilenceIsCut) {
  start();
  const auto everybody = [](const Peer&) { return true; };
  FakePeer silent, uploading, idle;
  coordinator_->opened(silent, "", "address");
  connect(uploading, "ann", 0);
  connect(idle, "bob", 1);
  begin(1, {0});
  uploading.next();
  EXPECT_EQ(verdict(uploading, offer(1, "one")).kind(), Verdict::WANTED);
  coordinator_->sweep(everybody);
  EXPECT_FALSE(silent.was_cut());
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  coordinator_->sweep(everybody);
  EXPECT_TRUE(silent.was_cut());
  EXPECT_TRUE(uploading.was_cut());
  EXPECT_FALSE(idle.was_cut());
  EXPECT_FALSE(idle.ending());
  // And whose certificate is no longer good, goes.
  coordinator_->sweep([&](const Peer& peer) { return &peer != &idle; });
  EXPECT_EQ(idle.ending(), Ending::kRefused);
}

// One that sends a byte now and then is cut, too.
TEST_F(CoordinatorTest, ADripIsCut) {
  options_.silence_seconds = 0.3;
  options_.least_bytes_a_second = 1000;
  start();
  FakePeer drip;
  connect(drip, "ann", 0);
  begin(1, {0});
  drip.next();
  const std::string update(90, 'x');
  EXPECT_EQ(verdict(drip, offer(1, update)).kind(), Verdict::WANTED);
  for (int i = 0; i < 60 && !drip.was_cut(); ++i) {
    send_chunk(drip, "x");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    coordinator_->sweep([](const Peer&) { return true; });
  }
  EXPECT_TRUE(drip.was_cut());
  stop_ = true;
}

// A client that offers what nobody wants is cut off, also when it comes back; the others' round goes on.
TEST_F(CoordinatorTest, AFloodIsCutOff) {
  options_.allowance = {.most = 10, .a_second = 0};
  start();
  FakePeer loud, quiet;
  connect(loud, "ann", 0);
  connect(quiet, "ben", 1);
  begin(1, {0, 1});
  EXPECT_EQ(loud.next().work().round(), 1u);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(verdict(loud, offer(7, "x")).kind(), Verdict::DISCARDED);
  EXPECT_EQ(loud.ending(), std::nullopt);
  coordinator_->received(loud, offer(7, "x"));
  EXPECT_EQ(loud.ending(), Ending::kBusy);
  EXPECT_TRUE(loud.nothing_more());
  coordinator_->received(loud, offer(7, "x"));
  EXPECT_EQ(std::count(faults_.begin(), faults_.end(), "flood"), 1);
  coordinator_->closed(loud, true);
  FakePeer again;
  coordinator_->opened(again, "ann", "address");
  EXPECT_EQ(again.ending(), Ending::kBusy);
  EXPECT_EQ(answer(quiet, 1, "update").kind(), Verdict::ACCEPTED);
  stop_ = true;
}

// What is asked for costs nothing: rounds without end.
TEST_F(CoordinatorTest, WorkIsNoFlood) {
  options_.allowance = {.most = 4, .a_second = 0};
  start();
  FakePeer peer;
  connect(peer, "ann", 0);
  for (uint32_t round = 1; round <= 20; ++round) {
    begin(round, {0});
    EXPECT_EQ(answer(peer, round, "update " + std::to_string(round)).kind(), Verdict::ACCEPTED);
    finish_round(round);
  }
  EXPECT_EQ(peer.ending(), std::nullopt);
}

// To be asked for a large update and hang up earns nothing: who does it over and over is cut off as well.
TEST_F(CoordinatorTest, OffersWithoutBytesAreAFlood) {
  options_.allowance = {.most = 20, .a_second = 0};
  options_.most_update_bytes = uint64_t{1} << 26;
  start();
  begin(1, {0, 1});
  FromClient large = offer(1, "x");
  large.mutable_offer()->set_size(uint64_t{1} << 26);
  bool cut = false;
  for (int i = 0; i < 10 && !cut; ++i) {
    FakePeer peer;
    coordinator_->opened(peer, "ann", "address");
    coordinator_->received(peer, hello(0));
    coordinator_->received(peer, large);
    cut = peer.ending() == Ending::kBusy;
    coordinator_->closed(peer, false);
  }
  EXPECT_TRUE(cut);
  stop_ = true;
}

TEST_F(CoordinatorTest, TooManyConnections) {
  start();
  std::vector<std::unique_ptr<FakePeer>> peers;
  for (int i = 0; i < 68; ++i) {
    peers.push_back(std::make_unique<FakePeer>());
    coordinator_->opened(*peers.back(), "", "address");
  }
  EXPECT_FALSE(peers[66]->ending());
  EXPECT_EQ(peers[67]->ending(), Ending::kBusy);
}

TEST_F(CoordinatorTest, TheResultGoesToEverybodyWhoComes) {
  start();
  FakePeer ann, bob;
  connect(ann, "ann", 0);
  store_->register_client("bob", 1, 3);
  std::thread later([&] {
    EXPECT_EQ(ann.next().result().rounds(), 7u);
    coordinator_->closed(ann, true);
    coordinator_->opened(bob, "bob", "address");
    coordinator_->received(bob, hello(1));
    EXPECT_TRUE(bob.next().has_welcome());
    EXPECT_EQ(bob.next().result().sha256(), sha256_hex(std::string_view("model")));
    coordinator_->closed(bob, true);
  });
  const auto begin = std::chrono::steady_clock::now();
  coordinator_->hand_out(7, bytes_of("model"), 60);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kLongest);
  later.join();
}

}  // namespace
}  // namespace bitfed
