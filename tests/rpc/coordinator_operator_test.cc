#include "tests/rpc/coordinator_fixture.h"

namespace bitfed {
namespace {

// Under the default policy a round waits for every chosen client: one whose certificate is revoked leaves it.
TEST_F(CoordinatorTest, ARevokedClientLeavesTheRound) {
  options_.policy.minimum_clients = 3;
  start();
  FakePeer ann, bob, cem;
  connect(ann, "ann", 0);
  connect(bob, "bob", 1);
  connect(cem, "cem", 2);
  begin(1, {0, 1, 2});
  EXPECT_EQ(answer(ann, 1, "one").kind(), Verdict::ACCEPTED);
  EXPECT_EQ(answer(bob, 1, "two").kind(), Verdict::ACCEPTED);
  coordinator_->sweep(
      [&](const Peer& peer) { return &peer == &cem ? Standing::kRevoked : Standing::kWelcome; });
  finish_round(1);
  EXPECT_EQ(cem.ending(), Ending::kRefused);
  EXPECT_THAT(lost_, ElementsAre(2));
  EXPECT_THAT(faults_, ElementsAre("revoked"));
  coordinator_->closed(cem, false);
  // Nor does the next round wait for it, also after a restart.
  EXPECT_THAT(coordinator_->present(2, 3), ElementsAre(0, 1));
  EXPECT_THAT(store_->dropped(), ElementsAre(2));
  // With a new certificate it takes part again.
  FakePeer again;
  connect(again, "cem", 2);
  EXPECT_TRUE(store_->dropped().empty());
  EXPECT_THAT(coordinator_->present(2, 3), ElementsAre(0, 1, 2));
}

// Expiry and a list without the name can be mended: the client is told to come back later.
TEST_F(CoordinatorTest, AnExpiredOrUnlistedClientMayComeBack) {
  start();
  FakePeer ann, bob;
  connect(ann, "ann", 0);
  connect(bob, "bob", 1);
  coordinator_->sweep(
      [&](const Peer& peer) { return &peer == &ann ? Standing::kExpired : Standing::kNotListed; });
  EXPECT_EQ(ann.ending(), Ending::kNotNow);
  EXPECT_EQ(bob.ending(), Ending::kNotNow);
  EXPECT_THAT(faults_, testing::UnorderedElementsAre("expired", "not-listed"));
}

TEST_F(CoordinatorTest, AClientThatIsAwayForTooLongLeavesTheRound) {
  options_.max_away_seconds = 3600;
  start();
  FakePeer ann, bob;
  connect(ann, "ann", 0);
  connect(bob, "bob", 1);
  begin(1, {0, 1, 2});  // 2 has never come
  EXPECT_EQ(answer(ann, 1, "one").kind(), Verdict::ACCEPTED);
  bob.next();
  coordinator_->closed(bob, false);
  pass(3000);
  FakePeer again;  // in time
  connect(again, "bob", 1);
  pass(1000);
  EXPECT_THAT(lost_, ElementsAre(2));
  EXPECT_EQ(answer(again, 1, "two").kind(), Verdict::ACCEPTED);
  finish_round(1);
  EXPECT_THAT(received_, ElementsAre(0, 1));
}

// After a restart a round that was begun goes on without clients that were dropped.
TEST_F(CoordinatorTest, ADroppedClientStaysOutAfterARestart) {
  start();
  store_->register_client("bob", 1, 3);
  coordinator_.reset();
  coordinator_ = nullptr;
  store_->set_dropped(1, true);
  store_.reset();
  start();
  FakePeer ann;
  connect(ann, "ann", 0);
  begin(1, {0, 1});
  EXPECT_EQ(answer(ann, 1, "one").kind(), Verdict::ACCEPTED);
  finish_round(1);
  EXPECT_THAT(lost_, ElementsAre(1));
}

TEST_F(CoordinatorTest, AnOperatorDropsAClient) {
  start();
  FakePeer ann, bob;
  connect(ann, "ann", 0);
  connect(bob, "bob", 1);
  begin(1, {0, 1});
  EXPECT_EQ(answer(ann, 1, "one").kind(), Verdict::ACCEPTED);
  coordinator_->drop("bob");
  finish_round(1);
  EXPECT_EQ(bob.ending(), Ending::kBusy);  // it may come back, for another round
  EXPECT_THROW(coordinator_->drop("nobody"), Error);
}

TEST_F(CoordinatorTest, AnOperatorChangesThePolicyInFlight) {
  start();
  FakePeer ann;
  connect(ann, "ann", 0);
  begin(1, {0, 1});
  EXPECT_EQ(answer(ann, 1, "one").kind(), Verdict::ACCEPTED);
  RoundPolicy policy = coordinator_->policy();
  policy.deadline_seconds = 60;
  coordinator_->set_policy(policy);
  pass(61);
  finish_round(1);
  EXPECT_THAT(lost_, ElementsAre(1));
  EXPECT_EQ(store_->policy()->deadline_seconds, 60);
  const Coordinator restarted(options_, *store_, [](const Event&) {});
  EXPECT_EQ(restarted.policy().deadline_seconds, 60);
}

// A thief that took a part before its owner came: the list gives it back, and an operator can.
TEST_F(CoordinatorTest, APartGoesBackToItsOwner) {
  start();
  FakePeer thief, owner, other;
  connect(thief, "thief", 0);
  coordinator_->opened(owner, "ann", "address", 0);
  coordinator_->received(owner, hello(0));
  EXPECT_EQ(owner.next().welcome().number(), 0u);
  EXPECT_EQ(thief.ending(), Ending::kNotNow);
  coordinator_->closed(thief, false);
  EXPECT_EQ(store_->clients().at(0), "ann");

  connect(thief, "thief", 1);
  coordinator_->opened(other, "bob", "address");
  coordinator_->received(other, hello(1));
  EXPECT_EQ(other.ending(), Ending::kNotNow);
  EXPECT_THAT(other.text(), HasSubstr("an operator can free it"));
  coordinator_->free_part(1);
  EXPECT_THROW(coordinator_->free_part(1), Error);
  FakePeer again;
  connect(again, "bob", 1);
}

TEST_F(CoordinatorTest, APauseSurvivesARestart) {
  start();
  coordinator_->pause(true);
  coordinator_.reset();
  store_.reset();
  start();
  EXPECT_TRUE(coordinator_->status().paused);
  coordinator_->pause(false);
  coordinator_.reset();
  store_.reset();
  start();
  EXPECT_FALSE(coordinator_->status().paused);
}

// A device says how far it has come; the server knows what it has accepted.
TEST_F(CoordinatorTest, ARestoredDeviceShows) {
  start();
  FakePeer ann;
  connect(ann, "ann", 0);
  begin(1, {0});
  EXPECT_EQ(answer(ann, 1, "update").kind(), Verdict::ACCEPTED);
  finish_round(1);
  coordinator_->closed(ann, true);
  const auto restored = [&] {
    const auto counts = coordinator_->status().counts;
    const auto found = counts.find("restored");
    return found == counts.end() ? 0 : found->second;
  };
  const auto come = [&](std::optional<uint32_t> after_round, const std::string& federation) {
    FakePeer peer;
    coordinator_->opened(peer, "ann", "address");
    FromClient message = hello(0);
    if (after_round) message.mutable_hello()->set_after_round(*after_round);
    message.mutable_hello()->set_federation(federation);
    coordinator_->received(peer, message);
    EXPECT_TRUE(peer.next().has_welcome());
    coordinator_->closed(peer, true);
    return restored();
  };
  const std::string federation = store_->federation();
  EXPECT_EQ(come(2, federation), 0u);
  EXPECT_EQ(come(std::nullopt, federation), 0u);  // an earlier build
  EXPECT_EQ(come(1, federation), 1u);             // as it was after round 0
  EXPECT_EQ(come(0, federation), 2u);
  EXPECT_EQ(come(0, ""), 3u);  // it has lost its state
  // Another client that takes the part over is not the restored one.
  coordinator_->free_part(0);
  EXPECT_EQ(come(0, ""), 3u);
  EXPECT_EQ(come(0, federation), 3u);
}

TEST_F(CoordinatorTest, RequestsForCertificatesArePassedOn) {
  options_.renew = [](const std::string& name, const std::string& request) {
    if (request == "bad") throw input_error("no request");
    return request == "signed" ? "certificate of " + name : "";
  };
  start();
  FakePeer ann;
  coordinator_->opened(ann, "ann", "address");
  coordinator_->received(ann, hello(0));
  EXPECT_TRUE(ann.next().welcome().renews());
  FromClient message;
  message.set_renew("waiting");
  coordinator_->received(ann, message);
  EXPECT_EQ(ann.next().renewed(), "");
  message.set_renew("signed");
  coordinator_->received(ann, message);
  EXPECT_EQ(ann.next().renewed(), "certificate of ann");
  message.set_renew("bad");
  coordinator_->received(ann, message);
  EXPECT_EQ(ann.ending(), Ending::kViolation);
}

TEST_F(CoordinatorTest, WithoutTlsNothingIsRenewed) {
  start();
  FakePeer ann;
  coordinator_->opened(ann, "ann", "address");
  coordinator_->received(ann, hello(0));
  EXPECT_FALSE(ann.next().welcome().renews());
  FromClient message;
  message.set_renew("waiting");
  coordinator_->received(ann, message);
  EXPECT_EQ(ann.ending(), Ending::kViolation);
}

}  // namespace
}  // namespace bitfed
