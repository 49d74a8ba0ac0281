#include "tests/rpc/coordinator_fixture.h"

namespace bitfed {
namespace {

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
  std::thread federation([&] { EXPECT_THAT(coordinator_->present(1, 3), ElementsAre(0, 2)); });
  wait_until([&] { return waiting_.load(); });
  connect(second, "bob", 0);
  federation.join();
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
  options_.policy.deadline_seconds = 60;
  options_.policy.min_answers = 2;
  start();
  FakePeer ann, bob;
  connect(ann, "ann", 0);
  connect(bob, "bob", 1);
  begin(1, {0, 1, 2});  // 2 has gone
  EXPECT_EQ(answer(ann, 1, "one").kind(), Verdict::ACCEPTED);
  pass(61);
  // One answer is too few: the round goes on, and takes the second.
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
  coordinator_->hand_out(7, bytes_of("model"), 60);
  later.join();
}

TEST_F(CoordinatorTest, TheDeadlineEndsARoundWithoutTheOthers) {
  options_.policy.deadline_seconds = 60;
  start();
  FakePeer ann, bob;
  connect(ann, "ann", 0);
  connect(bob, "bob", 1);
  begin(1, {0, 1});
  EXPECT_EQ(answer(ann, 1, "one").kind(), Verdict::ACCEPTED);
  pass(59);
  EXPECT_EQ(verdict(ann, offer(1, "one")).kind(), Verdict::ACCEPTED);
  EXPECT_TRUE(lost_.empty());
  pass(2);
  finish_round(1);
  EXPECT_THAT(lost_, ElementsAre(1));
}

TEST_F(CoordinatorTest, LingersForClientsThatAreAway) {
  start();
  FakePeer bob;
  connect(bob, "bob", 1);
  coordinator_->closed(bob, true);
  thread_ = std::thread([this] {
    coordinator_->hand_out(7, bytes_of("model"), 60);
    over_ = true;
  });
  pass(59);
  EXPECT_FALSE(over_);
  // The thread may not have looked at the clock yet: time passes until it has.
  wait_until([&] {
    pass(2);
    return over_.load();
  });
}

}  // namespace
}  // namespace bitfed
