// Secure aggregation as the server's clients see it: keys that were sent before their round, and updates
// whose verdict is the opening of their sum.

#include <numeric>
#include <span>

#include "bitfed/secure/protocol/secure_client.h"
#include "tests/rpc/coordinator_fixture.h"

namespace bitfed {
namespace {

using v1::Secure;

const std::vector<ModularField> kFields = {{4, 20}};

// Signs by a digest of the text and the signer's name: enough to tell who signed what.
class NamedIdentity : public Identity {
 public:
  explicit NamedIdentity(const std::string& name = "") : name_(name) {}
  Bytes certificate() const override { return bytes_of(name_); }
  Bytes sign(const Bytes& text) const override { return signature(certificate(), text); }
  std::string check(const Bytes& certificate, const Bytes& text, const Bytes& given) const override {
    if (given != signature(certificate, text)) throw input_error("the signature does not fit");
    return {certificate.begin(), certificate.end()};
  }

 private:
  static Bytes signature(const Bytes& certificate, Bytes text) {
    text.insert(text.end(), certificate.begin(), certificate.end());
    const Digest digest = digest_of(text);
    return {digest.begin(), digest.end()};
  }
  std::string name_;
};

// Has a certificate, and believes everybody.
class TrustingIdentity : public NoIdentity {
 public:
  explicit TrustingIdentity(const std::string& name) : name_(name) {}
  Bytes certificate() const override { return bytes_of(name_); }

 private:
  std::string name_;
};

class MaskedCoordinatorTest : public CoordinatorTest {
 protected:
  MaskedCoordinatorTest() {
    options_.privacy.secure_aggregation = true;
    options_.privacy.min_survivors = 3;
    options_.privacy.phase_seconds = 60;
    for (uint32_t number = 0; number < peers_.size(); ++number) {
      secrets_.push_back(random_secret());
      channels_.push_back(
          std::make_shared<Channel>(random_secret(), "f", number, std::make_shared<NoIdentity>()));
    }
  }
  std::vector<uint32_t> all() const {
    std::vector<uint32_t> numbers(options_.clients);
    std::iota(numbers.begin(), numbers.end(), 0u);
    return numbers;
  }

  // While the peers are there: the round may still be sending.
  ~MaskedCoordinatorTest() override {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  std::string keys(uint32_t number) const {
    const Bytes bytes = keys_of(secrets_[number], *channels_[number]);
    return {bytes.begin(), bytes.end()};
  }
  // A client that is there, and may have sent keys for the next sum.
  void join(uint32_t number, const std::string& next_keys) {
    FakePeer& peer = peers_[number];
    coordinator_->opened(peer, "client-" + std::to_string(number), "address");
    FromClient message = hello(number);
    message.mutable_hello()->set_masks(kMaskProtocol);
    coordinator_->received(peer, message);
    ASSERT_TRUE(peer.next().has_welcome());
    FromClient ready;
    ready.mutable_ready()->set_samples(10);
    ready.mutable_ready()->set_next_keys(next_keys);
    coordinator_->received(peer, ready);
  }
  // The second client on another connection, not ready yet.
  void connect_again() {
    coordinator_->closed(peers_[1], false);
    coordinator_->opened(other_, "client-1", "address");
    FromClient message = hello(1);
    message.mutable_hello()->set_masks(kMaskProtocol);
    coordinator_->received(other_, message);
    EXPECT_TRUE(other_.next().has_welcome());
  }
  // Without keys for the next sum.
  void be_ready_again() {
    FromClient ready;
    ready.mutable_ready();
    coordinator_->received(other_, ready);
  }
  FakePeer& come_back() {
    connect_again();
    be_ready_again();
    return other_;
  }
  void begin_masked(uint32_t round, uint32_t attempt = 0) {
    session_ = session_of(store_->federation(), round, attempt, sha256_hex(std::string_view("broadcast")));
    attempt_ = attempt;
    coordinator_->begin_sum(round, attempt, all(), sha256_hex(std::string_view("broadcast")));
    begin(round, all());
  }
  // As the federation does, before it chooses clients again.
  void begin_again() {
    store_->abandon_round(1);
    coordinator_->present(1, 3);
  }
  void say(uint32_t number, uint32_t round, Secure::Phase phase, const Bytes& content,
           const std::string& next_keys = "", bool keeps_certificates = false) {
    FromClient message;
    Secure& secure = *message.mutable_secure();
    secure.set_keeps_certificates(keeps_certificates);
    secure.set_phase(phase);
    secure.set_round(round);
    secure.set_attempt(attempt_);
    secure.set_content(content.data(), content.size());
    secure.set_next_keys(next_keys);
    coordinator_->received(peers_[number], message);
  }
  FromClient offer_masked(uint32_t round, const std::string& update) {
    FromClient message = offer(round, update);
    message.mutable_offer()->set_broadcast_sha256(text_of(session_));
    return message;
  }
  // Everybody's shares, by the list that came with the work.
  void share(uint32_t round, bool keeps_certificates = false) {
    clients_.clear();
    for (const uint32_t number : all()) {
      const FromServer message = peers_[number].next();
      ASSERT_TRUE(message.has_work());
      ASSERT_FALSE(message.work().keys().empty());
      clients_.emplace_back(ClientSession{session_, secrets_[number]}, channels_[number],
                            options_.privacy.min_survivors);
      say(number, round, Secure::SHARES, clients_.back().shares_for(bytes_of(message.work().keys())), "",
          keeps_certificates);
    }
    for (const uint32_t number : all()) {
      const FromServer message = peers_[number].next();
      ASSERT_EQ(message.secure().phase(), Secure::SHARES);
      clients_[number].take_shares(bytes_of(message.secure().content()));
    }
  }
  void send_update(uint32_t number, uint32_t round) {
    const std::string update = "update " + std::to_string(number);
    coordinator_->received(peers_[number], offer_masked(round, update));
    EXPECT_EQ(peers_[number].next().verdict().kind(), Verdict::WANTED);
    send_chunk(peers_[number], update);
  }

  // Of the first three clients, who send their next keys with the opening.
  void send_updates_and_open(uint32_t round) {
    for (uint32_t number = 0; number < 3; ++number) send_update(number, round);
    thread_.join();
    EXPECT_EQ(received_.size(), 3u);
    Opening opening;
    std::thread opened([&] { opening = coordinator_->open_sum(round, {0, 1, 2}, kFields); });
    for (uint32_t number = 0; number < 3; ++number) {
      const FromServer message = peers_[number].next();
      ASSERT_EQ(message.secure().phase(), Secure::OPENING) << message.ShortDebugString();
      const Bytes answer = clients_[number].open(bytes_of(message.secure().content()));
      secrets_[number] = random_secret();
      say(number, round, Secure::OPENING, answer, keys(number));
    }
    opened.join();
    EXPECT_TRUE(opening.masks);
    store_->save(round, State());
    received_.clear();
  }

  std::vector<Secret> secrets_;
  std::vector<std::shared_ptr<Channel>> channels_;
  std::vector<SecureClient> clients_;
  std::array<FakePeer, 4> peers_;
  FakePeer other_;
  Digest session_ = {};
  uint32_t attempt_ = 0;
};

// Two exchanges less: no keys to ask for before the shares, and no verdict before the opening.
TEST_F(MaskedCoordinatorTest, KeysThatAreThereComeWithTheWorkAndTheOpeningIsTheVerdict) {
  start();
  for (uint32_t number = 0; number < 3; ++number) join(number, keys(number));
  begin_masked(1);
  share(1);
  send_updates_and_open(1);
  // The keys that came with the answers are those of the next round.
  begin_masked(2);
  share(2);
  for (FakePeer& peer : std::span(peers_).first(3)) EXPECT_TRUE(peer.nothing_more());
}

// One without keys, one with old keys, or a client that came back: all are asked for theirs.
TEST_F(MaskedCoordinatorTest, KeysThatAreNotThereAreAskedFor) {
  start();
  join(0, keys(0));
  join(1, keys(1));
  join(2, "");
  begin_masked(1);
  for (uint32_t number = 0; number < 3; ++number) {
    EXPECT_TRUE(peers_[number].next().work().keys().empty());
    say(number, 1, Secure::KEYS, keys_of(secrets_[number], *channels_[number]));
  }
  for (FakePeer& peer : std::span(peers_).first(3)) EXPECT_EQ(peer.next().secure().phase(), Secure::KEYS);
}

TEST_F(MaskedCoordinatorTest, OldKeysAreAskedForAgain) {
  start();
  for (uint32_t number = 0; number < 3; ++number) join(number, keys(number));
  pass(601);
  begin_masked(1);
  for (FakePeer& peer : std::span(peers_).first(3)) EXPECT_TRUE(peer.next().work().keys().empty());
}

TEST_F(MaskedCoordinatorTest, KeysGoWithTheirConnection) {
  start();
  for (uint32_t number = 0; number < 3; ++number) join(number, keys(number));
  come_back();
  begin_masked(1);
  EXPECT_TRUE(peers_[0].next().work().keys().empty());
}

// Certificates are left out of lists for a client that has checked them on the same connection. All come
// again after a failure.
TEST_F(MaskedCoordinatorTest, CertificatesThatAClientHasCheckedAreLeftOut) {
  const auto channel = [](uint32_t number, const std::string& name) {
    return std::make_shared<Channel>(random_secret(), "f", number, std::make_shared<TrustingIdentity>(name));
  };
  const auto certificates = [](FakePeer& peer) {
    std::vector<std::string> names;
    for (const auto& [number, keys] : read_key_list(bytes_of(peer.next().work().keys())).keys)
      names.emplace_back(keys.certificate.begin(), keys.certificate.end());
    return names;
  };
  using Names = std::vector<std::string>;
  for (uint32_t number = 0; number < 3; ++number) channels_[number] = channel(number, "ann");
  start();
  for (uint32_t number = 0; number < 3; ++number) join(number, keys(number));
  begin_masked(1);
  share(1, true);
  channels_[0] = channel(0, "new");
  send_updates_and_open(1);
  connect_again();
  FromClient message;
  message.mutable_ready()->set_next_keys(keys(1));
  coordinator_->received(other_, message);
  message.mutable_failed()->set_round(1);
  coordinator_->received(peers_[2], message);
  begin_masked(2);
  EXPECT_EQ(certificates(peers_[0]), (Names{"new", "", ""}));
  EXPECT_EQ(certificates(other_), (Names{"new", "ann", "ann"}));
  EXPECT_EQ(certificates(peers_[2]), (Names{"new", "ann", "ann"}));
}

TEST_F(MaskedCoordinatorTest, ClientsOfEarlierBuildsGetAllCertificates) {
  for (uint32_t number = 0; number < 3; ++number)
    channels_[number] =
        std::make_shared<Channel>(random_secret(), "f", number, std::make_shared<TrustingIdentity>("ann"));
  start();
  for (uint32_t number = 0; number < 3; ++number) join(number, keys(number));
  begin_masked(1);
  share(1);
  send_updates_and_open(1);
  begin_masked(2);
  for (FakePeer& peer : std::span(peers_).first(3)) {
    for (const auto& [number, keys] : read_key_list(bytes_of(peer.next().work().keys())).keys)
      EXPECT_EQ(keys.certificate, bytes_of("ann"));
  }
}

// A client that comes back after the list went out gets it with its work.
TEST_F(MaskedCoordinatorTest, TheListComesAgain) {
  start();
  for (uint32_t number = 0; number < 3; ++number) join(number, keys(number));
  begin_masked(1);
  const std::string list = peers_[1].next().work().keys();
  EXPECT_FALSE(list.empty());
  FakePeer& again = come_back();
  EXPECT_EQ(again.next().work().keys(), list);
  EXPECT_TRUE(again.nothing_more());
  stop_ = true;
  thread_.join();
}

// Nothing is opened: the clients forget their updates.
TEST_F(MaskedCoordinatorTest, UpdatesOfASumThatIsNotOpenedAreDiscarded) {
  options_.policy.deadline_seconds = 5;
  start();
  for (uint32_t number = 0; number < 3; ++number) join(number, keys(number));
  begin_masked(1);
  share(1);
  send_update(0, 1);
  send_update(1, 1);
  wait_until([&] { return coordinator_->status().wanted == 1; });
  pass(6);
  thread_.join();
  const Opening opening = coordinator_->open_sum(1, {0, 1}, kFields);
  EXPECT_FALSE(opening.masks || opening.asked);
  begin_again();
  for (const uint32_t number : {0u, 1u})
    EXPECT_EQ(peers_[number].next().verdict().kind(), Verdict::DISCARDED);
  EXPECT_TRUE(peers_[2].nothing_more());
}

// A client that has come back does not know more than one that stayed: the same update may still be
// discarded.
TEST_F(MaskedCoordinatorTest, AnUpdateThatIsOfferedAgainIsNotAcceptedBeforeItsSumIs) {
  options_.policy.deadline_seconds = 5;
  start();
  for (uint32_t number = 0; number < 3; ++number) join(number, keys(number));
  begin_masked(1);
  share(1);
  send_update(0, 1);
  send_update(1, 1);
  wait_until([&] { return coordinator_->status().wanted == 1; });
  connect_again();
  coordinator_->received(other_, offer_masked(1, "update 1"));
  EXPECT_TRUE(other_.nothing_more());
  pass(6);
  thread_.join();
  EXPECT_FALSE(coordinator_->open_sum(1, {0, 1}, kFields).asked);
  EXPECT_TRUE(other_.nothing_more());
  begin_again();
  EXPECT_EQ(other_.next().verdict().kind(), Verdict::DISCARDED);
}

TEST_F(MaskedCoordinatorTest, AnUpdateThatIsOfferedAgainIsAcceptedWithItsSum) {
  start();
  for (uint32_t number = 0; number < 3; ++number) join(number, keys(number));
  begin_masked(1);
  share(1);
  for (uint32_t number = 0; number < 3; ++number) send_update(number, 1);
  thread_.join();
  connect_again();
  coordinator_->received(other_, offer_masked(1, "update 1"));
  EXPECT_TRUE(other_.nothing_more());
  std::thread opened([&] { coordinator_->open_sum(1, {0, 1, 2}, kFields); });
  EXPECT_EQ(other_.next().verdict().kind(), Verdict::ACCEPTED);
  be_ready_again();
  EXPECT_EQ(other_.next().secure().phase(), Secure::OPENING);
  stop_ = true;
  opened.join();
}

// Of a round that was begun before they came, and is begun again: it has had them.
TEST_F(MaskedCoordinatorTest, KeysServeOneSum) {
  start();
  for (const uint32_t number : {0u, 1u}) join(number, keys(number));
  begin_masked(1);
  wait_until([&] { return coordinator_->status().round == 1; });
  join(2, keys(2));
  const auto send_keys = [&] {
    for (uint32_t number = 0; number < 3; ++number) {
      EXPECT_TRUE(peers_[number].next().work().keys().empty());
      say(number, 1, Secure::KEYS, keys_of(secrets_[number], *channels_[number]));
    }
  };
  send_keys();
  for (FakePeer& peer : std::span(peers_).first(3)) EXPECT_EQ(peer.next().secure().phase(), Secure::KEYS);
  pass(61);  // nobody sends shares
  thread_.join();
  begin_again();
  begin_masked(1, 1);
  for (Secret& secret : secrets_) secret = random_secret();
  send_keys();
  const KeyList list = read_key_list(bytes_of(peers_[0].next().secure().content()));
  EXPECT_EQ(list.keys.at(2).secret, read_keys(bytes_of(keys(2))).secret);
}

TEST_F(MaskedCoordinatorTest, KeysOfAnotherAreAViolation) {
  start();
  join(0, keys(1));
  EXPECT_EQ(peers_[0].ending(), Ending::kViolation);
  EXPECT_THAT(peers_[0].text(), HasSubstr("keys of the next round: found those of client 1, expected 0"));
  join(1, "no keys");
  EXPECT_EQ(peers_[1].ending(), Ending::kViolation);
}

// Keys that every neighbour would refuse: their sender alone leaves the round.
class RefusedKeysTest : public MaskedCoordinatorTest {
 protected:
  // Client 1 has a certificate with this name, and sends its keys after they were changed.
  void expect_refused(const std::string& name, const std::function<void(RoundKeys*)>& change,
                      const std::string& why) {
    options_.privacy.min_survivors = 2;
    options_.identity = std::make_shared<NamedIdentity>();
    start();
    std::vector<RoundKeys> sent;
    for (const uint32_t number : all()) {
      join(number, "");
      const auto identity =
          std::make_shared<NamedIdentity>(number == 1 ? name : "client-" + std::to_string(number));
      channels_[number] = std::make_shared<Channel>(random_secret(), store_->federation(), number, identity);
      sent.push_back(read_keys(keys_of(secrets_[number], *channels_[number])));
    }
    other_key_ = sent[0].channel;
    change(&sent[1]);
    sent[1].signature = NamedIdentity(name).sign(signed_text(store_->federation(), sent[1]));
    if (why == "the signature does not fit") sent[1].signature[0] ^= 1;
    begin_masked(1);
    for (const uint32_t number : all()) {
      EXPECT_TRUE(peers_[number].next().work().keys().empty());
      say(number, 1, Secure::KEYS, write_keys(sent[number]));
    }
    EXPECT_EQ(peers_[1].ending(), Ending::kViolation);
    EXPECT_THAT(peers_[1].text(), HasSubstr(why));
    EXPECT_THAT(faults_, ElementsAre("violation"));
    for (const uint32_t number : {0u, 2u}) {
      const KeyList list = read_key_list(bytes_of(peers_[number].next().secure().content()));
      EXPECT_THAT(list.members, ElementsAre(0u, 2u));
    }
    EXPECT_EQ(coordinator_->status().wanted, 2u);
    stop_ = true;
    thread_.join();
  }
  PublicKey other_key_ = {};
};

TEST_F(RefusedKeysTest, SignedByNobody) {
  expect_refused(
      "client-1", [](RoundKeys*) {}, "the signature does not fit");
}

TEST_F(RefusedKeysTest, SignedByAnotherName) {
  expect_refused(
      "ann", [](RoundKeys*) {}, "found those of 'ann', expected those of 'client-1'");
}

TEST_F(RefusedKeysTest, TheKeyOfAnotherClient) {
  expect_refused(
      "client-1", [&](RoundKeys* keys) { keys->channel = other_key_; },
      "found the key of client 0, expected another");
}

TEST_F(RefusedKeysTest, AKeyThatNobodyCanAgreeWith) {
  expect_refused(
      "client-1", [](RoundKeys* keys) { keys->channel = {}; }, "a point that is not of low order");
}

// Everybody refuses the shares of one client: the next attempt is without it.
TEST_F(MaskedCoordinatorTest, AClientWithBrokenSharesIsLeftOut) {
  options_.privacy.min_survivors = 2;
  start();
  for (const uint32_t number : all()) join(number, keys(number));
  begin_masked(1);
  share(1);
  for (const uint32_t number : {0u, 2u}) {
    FromClient message;
    message.mutable_failed()->set_round(1);
    message.mutable_failed()->set_about(1);
    coordinator_->received(peers_[number], message);
  }
  send_update(1, 1);
  thread_.join();
  EXPECT_FALSE(coordinator_->open_sum(1, {1}, kFields).asked);
  store_->abandon_round(1);
  EXPECT_THAT(coordinator_->present(1, 3), ElementsAre(0u, 2u));
  EXPECT_EQ(coordinator_->status().counts.at("left-out"), 1u);
  EXPECT_THAT(coordinator_->present(2, 3), ElementsAre(0u, 1u, 2u));  // that was one round
}

// One that complains of another may be lying: both are left out.
TEST_F(MaskedCoordinatorTest, OfAComplaintBothAreLeftOut) {
  options_.clients = 4;
  options_.privacy.min_survivors = 2;
  options_.policy.deadline_seconds = 5;
  start();
  for (const uint32_t number : all()) join(number, keys(number));
  begin_masked(1);
  share(1);
  FromClient message;
  message.mutable_failed()->set_round(1);
  message.mutable_failed()->set_about(1);
  coordinator_->received(peers_[0], message);
  message.mutable_failed()->set_about(7);  // there is no such client
  coordinator_->received(peers_[3], message);
  send_update(1, 1);
  wait_until([&] { return coordinator_->status().wanted == 1; });
  pass(6);
  thread_.join();
  EXPECT_FALSE(coordinator_->open_sum(1, {1}, kFields).asked);
  store_->abandon_round(1);
  EXPECT_THAT(coordinator_->present(1, 4), ElementsAre(2u, 3u));
}

// A wrong share is replaced by one that comes later, and its sender is logged.
TEST_F(MaskedCoordinatorTest, AWrongShareIsFoundOutAndTheSumOpened) {
  options_.clients = 4;
  start();
  for (const uint32_t number : all()) join(number, keys(number));
  begin_masked(1);
  share(1);
  for (const uint32_t number : all()) send_update(number, 1);
  thread_.join();
  Opening opening;
  std::thread opened([&] { opening = coordinator_->open_sum(1, all(), kFields); });
  for (const uint32_t number : all()) {
    Bytes answer = clients_[number].open(bytes_of(peers_[number].next().secure().content()));
    if (number == 1) {
      OpenedShares wrong = read_opened(answer);
      for (auto& [owner, share] : wrong) share[0] ^= 1;
      answer = write_opened(wrong);
    }
    say(number, 1, Secure::OPENING, answer);
  }
  opened.join();
  EXPECT_TRUE(opening.masks);
  EXPECT_THAT(faults_, ElementsAre("wrong-shares"));
  EXPECT_FALSE(peers_[1].ending());  // it may have been sent a wrong one
}

// A client whose secret nothing opens is left out of the next round, and then of more.
TEST_F(MaskedCoordinatorTest, AClientWhoseSecretDoesNotOpenIsLeftOut) {
  options_.privacy.min_survivors = 2;
  start();
  for (const uint32_t number : all()) join(number, keys(number));
  for (const uint32_t round : {1u, 3u}) {
    begin_masked(round);
    share(round);
    for (const uint32_t number : all()) send_update(number, round);
    thread_.join();
    Opening opening;
    std::thread opened([&] { opening = coordinator_->open_sum(round, all(), kFields); });
    for (const uint32_t number : all()) {
      OpenedShares shares =
          read_opened(clients_[number].open(bytes_of(peers_[number].next().secure().content())));
      shares[1] = random_secret();
      secrets_[number] = random_secret();
      say(number, round, Secure::OPENING, write_opened(shares), keys(number));
    }
    opened.join();
    EXPECT_TRUE(!opening.masks && opening.asked);
    store_->save(round, State());
    EXPECT_THAT(coordinator_->present(round + 1, 3), ElementsAre(0u, 2u));
  }
  EXPECT_THAT(coordinator_->present(5, 3), ElementsAre(0u, 2u));
  EXPECT_THAT(coordinator_->present(6, 3), ElementsAre(0u, 1u, 2u));
  EXPECT_THAT(faults_, ElementsAre("wrong-shares", "wrong-shares"));
}

}  // namespace
}  // namespace bitfed
