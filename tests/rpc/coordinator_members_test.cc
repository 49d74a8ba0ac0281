#include "tests/rpc/coordinator_fixture.h"

namespace bitfed {
namespace {

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
      "not asked for");
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
    EXPECT_TRUE(peer.ending() == Ending::kRefused || peer.ending() == Ending::kNotNow ||
                peer.ending() == Ending::kViolation);
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
  refused("bob", hello(0), "is held by client 'ann'");
}

TEST_F(CoordinatorTest, AMaskedFederationNeedsDevicesThatMaskInTheSameWay) {
  options_.privacy.secure_aggregation = true;
  start();
  const auto text = [&](uint32_t masks) {
    FakePeer peer;
    coordinator_->opened(peer, "ann", "address");
    FromClient message = hello(0);
    message.mutable_hello()->set_masks(masks);
    coordinator_->received(peer, message);
    coordinator_->closed(peer, false);
    return peer.text();
  };
  EXPECT_THAT(text(0), HasSubstr("masks updates by protocol 3, this client by none: update the client"));
  EXPECT_THAT(text(2), HasSubstr("this client by 2: update the client"));
  EXPECT_THAT(text(4), HasSubstr("this client by 4: update the server"));
  EXPECT_EQ(text(3), "");
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

// Strings of a client are cut between characters, also where one straddles the limit.
TEST_F(CoordinatorTest, StringsOfAClientCannotBreakTheLog) {
  start();
  const auto straddling = [](size_t limit) {
    return std::string(limit - 1, 'a') + "\u00e9" + std::string(99, 'b');
  };
  FromClient foreign = hello(0);
  foreign.mutable_hello()->set_federation(straddling(kMaxNameBytes));
  FakePeer stray;
  coordinator_->opened(stray, "ann", "address");
  coordinator_->received(stray, foreign);
  coordinator_->closed(stray, false);

  FromClient greeting = hello(0);
  greeting.mutable_hello()->set_version(straddling(kMaxNameBytes));
  FakePeer ann;
  coordinator_->opened(ann, "ann", "address");
  coordinator_->received(ann, greeting);
  EXPECT_TRUE(ann.next().has_welcome());
  FromClient ready;
  ready.mutable_ready();
  coordinator_->received(ann, ready);
  begin(1, {0});
  wait_until([&] { return coordinator_->status().round == 1; });
  FromClient failed;
  failed.mutable_failed()->set_round(1);
  failed.mutable_failed()->set_reason(straddling(500));
  coordinator_->received(ann, failed);
  thread_.join();

  FakePeer nameless;
  FromClient shouting = hello(1);
  shouting.mutable_hello()->set_name("\x1b[2J" + std::string(900000, 'x'));
  coordinator_->opened(nameless, "", "address");
  coordinator_->received(nameless, shouting);
  EXPECT_THAT(faults_, ElementsAre("refused", "failed", "violation"));
  EXPECT_LT(longest_event_, 1000u);
  EXPECT_NO_THROW(coordinator_->present(2, 3));  // the federation goes on
}

// Whatever a client sends, in whatever order: its connection may end; the round and the others go on.
TEST_F(CoordinatorTest, NonsenseHarmsNobodyElse) {
  options_.allowance.max = 1e9;
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

}  // namespace
}  // namespace bitfed
