#include "tests/rpc/coordinator_fixture.h"

namespace bitfed {
namespace {

TEST_F(CoordinatorTest, RoomForUpdatesIsBounded) {
  options_.max_waiting_bytes = 150;
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

// The limit of an update comes from the model, whatever --max-update allows.
TEST_F(CoordinatorTest, AnUpdateIsAsLargeAsTheModelAtMost) {
  options_.max_update_bytes = uint64_t{64} << 20;
  options_.raw_upload_bytes = 1000000;
  start();
  FakePeer ann;
  connect(ann, "ann", 0);
  begin(1, {0});
  ann.next();
  FromClient large = offer(1, "x");
  large.mutable_offer()->set_size(uint64_t{4} << 20);
  EXPECT_THAT(verdict(ann, large).reason(), HasSubstr("expected at most 3048576"));
  finish_round(1);
}

TEST_F(CoordinatorTest, AModelThatNoUpdateCanHoldIsWarnedOf) {
  options_.max_update_bytes = 5;
  start();
  FakePeer ann;
  connect(ann, "ann", 0);
  begin(1, {0});
  ann.next();
  EXPECT_EQ(coordinator_->status().counts.at("warning"), 1u);
  stop_ = true;
}

// Clients that take all the room and drip: they are cut while others wait for it, and leave the round.
TEST_F(CoordinatorTest, ADripDoesNotStarveOthers) {
  options_.max_waiting_bytes = 150;
  options_.silence_seconds = 60;
  options_.hello_seconds = 30;
  options_.min_bytes_per_second = 1;  // alone, the drip would have 160 s
  start();
  FakePeer drip, ann;
  connect(drip, "mallory", 0);
  connect(ann, "ann", 1);
  begin(1, {0, 1});
  drip.next();
  ann.next();
  const std::string update(100, 'x');
  EXPECT_EQ(verdict(drip, offer(1, update)).kind(), Verdict::WANTED);
  coordinator_->received(ann, offer(1, update));
  EXPECT_TRUE(ann.nothing_more());
  for (int i = 0; i < 50 && !drip.was_cut(); ++i) {
    send_chunk(drip, "x");
    pass(2);
  }
  EXPECT_TRUE(drip.was_cut());
  EXPECT_EQ(ann.next().verdict().kind(), Verdict::WANTED);
  send_chunk(ann, update);
  EXPECT_EQ(ann.next().verdict().kind(), Verdict::ACCEPTED);
  finish_round(1);
  EXPECT_THAT(lost_, ElementsAre(0));
}

TEST_F(CoordinatorTest, SilenceIsCut) {
  start();
  FakePeer silent, uploading, idle;
  coordinator_->opened(silent, "", "address");
  connect(uploading, "ann", 0);
  connect(idle, "bob", 1);
  begin(1, {0});
  uploading.next();
  EXPECT_EQ(verdict(uploading, offer(1, "one")).kind(), Verdict::WANTED);
  pass(0);
  EXPECT_FALSE(silent.was_cut());
  pass(1);
  EXPECT_TRUE(silent.was_cut());
  EXPECT_TRUE(uploading.was_cut());
  EXPECT_FALSE(idle.was_cut());
  EXPECT_FALSE(idle.ending());
  coordinator_->sweep(
      [&](const Peer& peer) { return &peer == &idle ? Standing::kRevoked : Standing::kWelcome; });
  EXPECT_EQ(idle.ending(), Ending::kRefused);
}

// A client that sends one byte now and then is cut, too.
TEST_F(CoordinatorTest, ADripIsCut) {
  options_.silence_seconds = 0.3;
  options_.min_bytes_per_second = 1000;
  start();
  FakePeer drip;
  connect(drip, "ann", 0);
  begin(1, {0});
  drip.next();
  const std::string update(90, 'x');
  EXPECT_EQ(verdict(drip, offer(1, update)).kind(), Verdict::WANTED);
  for (int i = 0; i < 60 && !drip.was_cut(); ++i) {
    send_chunk(drip, "x");
    pass(0.02);
  }
  EXPECT_TRUE(drip.was_cut());
  stop_ = true;
}

// A client that offers unwanted updates is cut off, also when it reconnects; the round of the others goes on.
TEST_F(CoordinatorTest, AFloodIsCutOff) {
  options_.allowance = {.max = 10, .per_second = 0};
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

// What a client asks of an operator's service counts as its messages, there and in its session.
TEST_F(CoordinatorTest, AskingAsAnOperatorIsAFlood) {
  options_.allowance = {.max = 10, .per_second = 1};
  start();
  FakePeer loud, quiet;
  connect(loud, "ann", 0);
  connect(quiet, "ben", 1);
  for (int i = 0; i < 7; ++i) EXPECT_TRUE(coordinator_->asked_as_operator("ann", "address", "refused"));
  EXPECT_FALSE(coordinator_->asked_as_operator("ann", "address", "refused"));
  EXPECT_EQ(std::count(faults_.begin(), faults_.end(), "refused"), 7);
  EXPECT_EQ(coordinator_->status().counts.at("flood"), 1u);
  coordinator_->received(loud, offer(7, "x"));
  EXPECT_EQ(loud.ending(), Ending::kBusy);
  EXPECT_EQ(verdict(quiet, offer(7, "x")).kind(), Verdict::DISCARDED);
  pass(1);
  EXPECT_TRUE(coordinator_->asked_as_operator("ann", "address", "refused"));
}

// Messages that the server asked for cost nothing: the allowance lasts for any number of rounds.
TEST_F(CoordinatorTest, WorkIsNoFlood) {
  options_.allowance = {.max = 4, .per_second = 0};
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

// A client that has large updates accepted for transfer and hangs up, again and again, is cut off.
TEST_F(CoordinatorTest, OffersWithoutBytesAreAFlood) {
  options_.allowance = {.max = 20, .per_second = 0};
  options_.max_update_bytes = uint64_t{1} << 26;
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

// A client that is refused again and again does not fill the log, and does not hide other clients' lines.
TEST_F(CoordinatorTest, LinesOfTheLogAreLimited) {
  options_.log_allowance = {.max = 10, .per_second = 1};
  start();
  for (int i = 0; i < 27000; ++i)
    coordinator_->refused("gone", "address", "the certificate of 'gone' was revoked");
  EXPECT_EQ(faults_.size(), 10u);
  for (int i = 0; i < 100; ++i) coordinator_->handshake_failed("noise");
  EXPECT_EQ(faults_.size(), 20u);
  coordinator_->refused("other", "address", "the certificate of 'other' was revoked");
  EXPECT_EQ(faults_.size(), 21u);
  EXPECT_EQ(coordinator_->status().counts.at("refused"), 27001u);
  EXPECT_EQ(coordinator_->status().counts.at("log-left-out"), 26990u + 90u);
  pass(5);
  coordinator_->refused("gone", "address", "the certificate of 'gone' was revoked");
  EXPECT_EQ(left_out_, 26990u);
}

TEST_F(CoordinatorTest, AClientThatDoesNotReadIsCut) {
  start();
  FakePeer ann;
  connect(ann, "ann", 0);
  ann.stall(599);
  pass(0);
  EXPECT_FALSE(ann.was_cut());
  ann.stall(601);
  pass(0);
  EXPECT_TRUE(ann.was_cut());
  EXPECT_THAT(faults_, ElementsAre("stalled"));
}

// One certificate with streams that never say hello does not take the places of others.
TEST_F(CoordinatorTest, PlacesArePerName) {
  options_.allowance = {.max = 50, .per_second = 1};
  start();
  FakePeer ann;
  connect(ann, "ann", 0);
  std::vector<std::unique_ptr<FakePeer>> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(std::make_unique<FakePeer>());
    coordinator_->opened(*silent.back(), "mallory", "address");
  }
  EXPECT_FALSE(silent[3]->ending());
  EXPECT_EQ(silent[4]->ending(), Ending::kBusy);
  FakePeer bob;
  connect(bob, "bob", 1);
  for (const auto& peer : silent) coordinator_->closed(*peer, false);
  FakePeer again;
  coordinator_->opened(again, "mallory", "address");
  EXPECT_EQ(again.ending(), Ending::kBusy);  // a hundred attempts have used up the allowance of this name
  pass(60);
  FakePeer later;
  coordinator_->opened(later, "mallory", "address");
  EXPECT_FALSE(later.ending());
}

// Strangers fill all spare places: a registered client comes in all the same.
TEST_F(CoordinatorTest, ARegisteredClientHasItsPlace) {
  start();
  FakePeer ann;
  connect(ann, "ann", 0);
  coordinator_->closed(ann, false);
  std::vector<std::unique_ptr<FakePeer>> strangers;
  for (int i = 0; i < 80; ++i) {
    strangers.push_back(std::make_unique<FakePeer>());
    coordinator_->opened(*strangers.back(), "stranger" + std::to_string(i), "address");
  }
  EXPECT_EQ(strangers.back()->ending(), Ending::kBusy);
  FakePeer again;
  connect(again, "ann", 0);
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

// A small update may come with its offer. It goes through all that one in chunks goes through.
class UpdateInOfferTest : public CoordinatorTest {
 protected:
  FromClient whole(uint32_t round, const std::string& update) {
    FromClient message = offer(round, update);
    message.mutable_offer()->set_update(update);
    return message;
  }
  // A round with client 0, who has got its work.
  void begin_one() {
    start();
    connect(ann_, "ann", 0);
    begin(1, {0});
    EXPECT_TRUE(ann_.next().has_work());
  }
  FakePeer ann_;
  FakePeer bob_;
};

TEST_F(UpdateInOfferTest, CountsWithOneMessage) {
  begin_one();
  EXPECT_EQ(verdict(ann_, whole(1, "update")).kind(), Verdict::ACCEPTED);
  finish_round(1);
  EXPECT_EQ(store_->accepted(1, 0), sha256_hex(std::string_view("update")));
  EXPECT_EQ(coordinator_->status().waiting_bytes, 0u);
  EXPECT_EQ(verdict(ann_, whole(1, "update")).kind(), Verdict::ACCEPTED);  // the same again
  EXPECT_EQ(verdict(ann_, whole(1, "another")).kind(), Verdict::REFUSED);
}

TEST_F(UpdateInOfferTest, AnotherDigestOrWhatDoesNotFitIsRefused) {
  begin_one();
  FromClient message = whole(1, "update");
  message.mutable_offer()->set_update("Update");
  EXPECT_EQ(verdict(ann_, message).kind(), Verdict::REFUSED);
  thread_.join();
  EXPECT_THAT(received_, ElementsAre());
  EXPECT_EQ(coordinator_->status().waiting_bytes, 0u);
}

TEST_F(UpdateInOfferTest, OfAnotherSizeOrTooLargeIsAViolation) {
  options_.max_update_bytes = uint64_t{1} << 20;
  begin_one();
  FromClient message = whole(1, "update");
  message.mutable_offer()->set_update("update and more");
  coordinator_->received(ann_, message);
  EXPECT_EQ(ann_.ending(), Ending::kViolation);
  connect(bob_, "bob", 1);
  coordinator_->received(bob_, whole(1, std::string(kMaxUpdateInOffer + 1, 'x')));
  EXPECT_EQ(bob_.ending(), Ending::kViolation);
}

// Of an update that must wait nothing is kept but the offer.
TEST_F(UpdateInOfferTest, OneThatMustWaitIsAskedForLater) {
  start();
  connect(ann_, "ann", 0);
  coordinator_->received(ann_, whole(1, "update"));
  EXPECT_TRUE(ann_.nothing_more());
  EXPECT_EQ(coordinator_->status().waiting_bytes, 0u);
  begin(1, {0});
  EXPECT_TRUE(ann_.next().has_work());
  EXPECT_EQ(ann_.next().verdict().kind(), Verdict::WANTED);
  send_chunk(ann_, "update");
  EXPECT_EQ(ann_.next().verdict().kind(), Verdict::ACCEPTED);
  thread_.join();
}

}  // namespace
}  // namespace bitfed
