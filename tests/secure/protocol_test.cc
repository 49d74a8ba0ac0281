// The protocol of secure aggregation without a transport: whole sums with drop-outs in every phase, and
// servers that do not keep to it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "bitfed/base/error.h"
#include "bitfed/base/hash/random.h"
#include "bitfed/secure/protocol/neighbours.h"
#include "bitfed/secure/protocol/secure_client.h"
#include "bitfed/secure/protocol/secure_server.h"
#include "bitfed/secure/protocol/shamir.h"
#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

const std::vector<ModularField> kFields = {{3, 44}, {5, 8}, {1, 38}};

// Signs by a digest of the text and the signer's name: enough to tell who signed what.
class NamedIdentity : public Identity {
 public:
  explicit NamedIdentity(std::string name) : name_(std::move(name)) {}
  Bytes certificate() const override { return {name_.begin(), name_.end()}; }
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

// A round of so many clients, numbered from 10 on, each with an update of its own.
class Round {
 public:
  explicit Round(size_t clients, size_t min_clients = 3, const std::string& federation = "f")
      : federation_(federation), session_(session_of(federation, 1, 0, "00")), numbers_(clients) {
    std::iota(numbers_.begin(), numbers_.end(), 10u);
    for (const uint32_t number : numbers_) {
      identities_.push_back(std::make_shared<NamedIdentity>("client-" + std::to_string(number)));
      channels_.push_back(channel(number, random_secret()));
      clients_.emplace(number, SecureClient({session_, random_secret()}, channels_.back(), min_clients));
      RandomStream random({number, "update"});
      ModularVector update = ModularVector::zero(kFields);
      update.values = {
          random.next_u64() & modular_mask(44), 1, number, number & 0xff, 2, 3, 4, 5, 100 + number};
      updates_[number] = update;
    }
    server_ = std::make_shared<SecureServer>(session_, numbers_, min_clients);
  }

  SecureClient& client(uint32_t number) { return clients_.at(number); }
  SecureServer& server() { return *server_; }
  const NamedIdentity& identity(size_t index) const { return *identities_[index]; }
  std::shared_ptr<Channel> channel(uint32_t number, const Secret& key) const {
    return std::make_shared<Channel>(key, federation_, number, identities_[number - 10]);
  }
  // The same clients with the same channels in another session.
  Round next(uint32_t attempt) const {
    Round round = *this;
    round.session_ = session_of(federation_, 1, attempt, "00");
    round.clients_.clear();
    for (const auto& channel : channels_)
      round.clients_.emplace(channel->number(), SecureClient({round.session_, random_secret()}, channel, 3));
    round.server_ = std::make_shared<SecureServer>(round.session_, numbers_, 3);
    round.masked_.clear();
    round.pending_.clear();
    round.saved_.clear();
    return round;
  }

  // Everybody but `lost` sends keys, and so on.
  bool keys(const std::vector<uint32_t>& lost = {}) {
    for (const uint32_t number : without(lost)) server_->add_keys(number, client(number).keys());
    return saved(server_->end_keys());
  }
  bool shares(const std::vector<uint32_t>& lost = {}) {
    for (const uint32_t number : server_->members())
      pending_[number] = client(number).shares_for(server_->message_for(number));
    for (const uint32_t number : without(lost)) {
      if (pending_.contains(number)) server_->add_shares(number, pending_[number]);
    }
    return saved(server_->end_shares());
  }
  void mask() {
    for (const uint32_t number : server_->members()) {
      client(number).take_shares(server_->message_for(number));
      masked_[number] = updates_[number];
      client(number).mask(&masked_[number]);
    }
  }
  bool updates(const std::vector<uint32_t>& lost = {}) {
    std::vector<uint32_t> survivors = without(lost);
    std::erase_if(survivors, [&](uint32_t number) { return !masked_.contains(number); });
    return saved(server_->end_updates(survivors));
  }
  void open(const std::vector<uint32_t>& lost = {}) {
    for (const uint32_t number : server_->members()) {
      if (std::find(lost.begin(), lost.end(), number) == lost.end())
        server_->add_opened(number, client(number).open(server_->message_for(number)));
    }
  }
  // The sum as the server finds it, and as it should be.
  ModularVector sum() const {
    ModularVector sum = ModularVector::zero(kFields);
    for (const uint32_t number : server_->members()) sum.add(masked_.at(number));
    sum.subtract(server_->masks(kFields));
    return sum;
  }
  ModularVector expected() const {
    ModularVector sum = ModularVector::zero(kFields);
    for (const uint32_t number : server_->members()) sum.add(updates_.at(number));
    return sum;
  }
  void restart_server() {
    server_ = std::make_shared<SecureServer>(session_, numbers_, 3);
    server_->restore(saved_);
  }
  void restart_clients(size_t min_clients = 3) {
    std::map<uint32_t, SecureClient> restarted;
    for (const auto& [number, client] : clients_)
      restarted.emplace(
          number, SecureClient(client.session(), channel(number, client.session().channel), min_clients));
    clients_.swap(restarted);
  }

 private:
  bool saved(bool ended) {
    if (ended) saved_.push_back(server_->save());
    return ended;
  }
  std::vector<uint32_t> without(const std::vector<uint32_t>& lost) const {
    std::vector<uint32_t> left = numbers_;
    std::erase_if(left, [&](uint32_t n) { return std::find(lost.begin(), lost.end(), n) != lost.end(); });
    return left;
  }

  std::string federation_;
  Digest session_;
  std::vector<uint32_t> numbers_;
  std::vector<std::shared_ptr<NamedIdentity>> identities_;
  std::vector<std::shared_ptr<Channel>> channels_;
  std::map<uint32_t, SecureClient> clients_;
  std::map<uint32_t, ModularVector> updates_, masked_;
  std::map<uint32_t, Bytes> pending_;
  std::vector<Bytes> saved_;  // by the server, of each phase
  std::shared_ptr<SecureServer> server_;
};

void expect_opens(Round* round, size_t survivors) {
  ASSERT_TRUE(round->server().can_open());
  EXPECT_EQ(round->server().members().size(), survivors);
  EXPECT_EQ(round->sum(), round->expected());
}

TEST(ProtocolTest, TheSumOfAllClients) {
  for (const size_t clients : {3, 10, 64, 65, 80, 150}) {
    Round round(clients);
    ASSERT_TRUE(round.keys() && round.shares());
    round.mask();
    ASSERT_TRUE(round.updates());
    round.open();
    expect_opens(&round, clients);
  }
}

// Three of ten in each phase in turn, and one of them in every phase.
TEST(ProtocolTest, DropOutsInEveryPhase) {
  const std::vector<uint32_t> lost = {11, 14, 19};
  for (int phase = 0; phase < 4; ++phase) {
    Round round(10);
    const auto in = [&](int p) { return phase == p ? lost : std::vector<uint32_t>(); };
    ASSERT_TRUE(round.keys(in(0)));
    ASSERT_TRUE(round.shares(in(1)));
    round.mask();
    ASSERT_TRUE(round.updates(in(2)));
    round.open(in(3));
    expect_opens(&round, phase < 3 ? 7 : 10);
  }
  Round round(12);
  ASSERT_TRUE(round.keys({11}) && round.shares({14}));
  round.mask();
  ASSERT_TRUE(round.updates({19}));
  round.open({10});
  expect_opens(&round, 9);
}

TEST(ProtocolTest, DropOutsInALargeRound) {
  Round round(150);
  std::vector<uint32_t> lost;
  for (uint32_t number = 10; number < 160; number += 10) lost.push_back(number);
  ASSERT_TRUE(round.keys() && round.shares());
  round.mask();
  ASSERT_TRUE(round.updates(lost));
  round.open();
  expect_opens(&round, 135);
}

TEST(ProtocolTest, BelowTheThresholdNothingIsOpened) {
  const std::vector<uint32_t> four = {10, 11, 12, 13};  // of ten: six are left, seven are needed
  Round shares(10);
  ASSERT_TRUE(shares.keys());
  EXPECT_FALSE(shares.shares(four));
  Round updates(10);
  ASSERT_TRUE(updates.keys() && updates.shares());
  updates.mask();
  EXPECT_FALSE(updates.updates(four));
  EXPECT_EQ(updates.server().phase(), SecureServer::Phase::kUpdates);
  Round opening(10);
  ASSERT_TRUE(opening.keys() && opening.shares());
  opening.mask();
  ASSERT_TRUE(opening.updates());
  opening.open(four);
  EXPECT_FALSE(opening.server().can_open());
  EXPECT_THAT(error_text([&] { opening.sum(); }), HasSubstr("do not fit"));
  Round few(2, 3);
  EXPECT_FALSE(few.keys());
}

TEST(ProtocolTest, ServerAndClientsRestartInEveryPhase) {
  Round round(10);
  round.restart_clients();
  ASSERT_TRUE(round.keys({12}));
  round.restart_server();
  round.restart_clients();
  ASSERT_TRUE(round.shares({13}));
  round.restart_server();
  round.restart_clients();
  round.mask();
  round.restart_clients();
  ASSERT_TRUE(round.updates({14}));
  round.restart_server();
  round.open();
  round.restart_server();  // forgets the answers, and asks again
  round.restart_clients();
  round.open();
  expect_opens(&round, 7);
}

// A server that is not honest.
TEST(HostileServerTest, AsksForASecondOpening) {
  Round round(10);
  ASSERT_TRUE(round.keys() && round.shares());
  round.mask();
  SecureClient& client = round.client(10);
  const std::vector<uint32_t> first = {10, 11, 12, 13, 14, 15, 16, 17, 18};
  const std::vector<uint32_t> second = {10, 11, 12, 13, 14, 15, 16, 17, 19};
  const Bytes answer = client.open(write_numbers(first));
  EXPECT_EQ(client.open(write_numbers(first)), answer);
  const auto ask = [&](SecureClient& asked) {
    return error_text([&] { asked.open(write_numbers(second)); });
  };
  EXPECT_THAT(ask(client), HasSubstr("second, different list of survivors for the same sum: refused"));
  // Also after a restart.
  SecureClient again(client.session(), round.channel(10, client.session().channel), 3);
  EXPECT_THAT(ask(again), HasSubstr("second, different list of survivors"));
  EXPECT_EQ(again.open(write_numbers(first)), answer);
}

// Of 18 it got the share of the mask of its own, of 19 that of the wrap key: never both of one.
TEST(HostileServerTest, GetsOneSecretOfEachPeer) {
  Round round(10);
  ASSERT_TRUE(round.keys() && round.shares());
  round.mask();
  const OpenedShares answer =
      read_opened(round.client(10).open(write_numbers({10, 11, 12, 13, 14, 15, 16, 17, 18})));
  EXPECT_EQ(answer.size(), 10u);
  EXPECT_THAT(error_text([&] {
                round.client(10).open(write_numbers({10, 11, 12, 13, 14, 15, 16, 17, 18, 19}));
              }),
              HasSubstr("refused"));
  const auto twice = [&](const std::vector<uint32_t>& numbers) {
    return error_text([&] { round.client(11).open(write_numbers(numbers)); });
  };
  EXPECT_THAT(twice({10, 11, 12, 13, 14, 15, 16, 17, 17}),
              HasSubstr("found client 17, expected 18 or above"));
  EXPECT_THAT(twice({10, 12, 13, 14, 15, 16, 17, 18}), HasSubstr("this client 11 not among them"));
  EXPECT_THAT(twice({10, 11, 12, 13, 14, 15, 16, 99}), HasSubstr("not among the members"));
  EXPECT_THAT(twice({10, 11, 12, 13, 14, 15}), HasSubstr("found 6 of this client's neighbours"));
  EXPECT_THAT(twice({11}), HasSubstr("found 1, expected at least 3"));
}

// Ten clients, a sum of at least seven. If each may be told that three others are lost, the server can have
// four of them lost by seven answers each (4 * 7 <= 10 * 3), and open the sum of six: so a client must see
// eight of ten.
TEST(HostileServerTest, TellsClientsDifferentSurvivors) {
  EXPECT_EQ(least_in_sum(10, 10, 7), 6u);
  EXPECT_EQ(least_in_sum(10, 10, 8), 8u);
  EXPECT_EQ(least_in_sum(10, 10, 10), 10u);
  EXPECT_EQ(least_in_sum(100, 65, 44), 53u);
  const auto lists = [](uint32_t lost) {
    std::vector<uint32_t> numbers(10 - lost);
    std::iota(numbers.begin(), numbers.end(), 10u);
    return write_numbers(numbers);
  };
  Round round(10, 7);
  ASSERT_TRUE(round.keys() && round.shares());
  round.mask();
  EXPECT_THAT(error_text([&] { round.client(10).open(lists(3)); }),
              HasSubstr("found 7 of this client's 10 neighbours, expected more"));
  EXPECT_NO_THROW(round.client(10).open(lists(2)));
  // An honest server does not ask for what is refused.
  EXPECT_FALSE(round.updates({17, 18, 19}));
  EXPECT_TRUE(round.updates({18, 19}));
}

TEST(HostileServerTest, ReplaysAListOfKeys) {
  Round earlier(10, 3, "another federation");
  ASSERT_TRUE(earlier.keys());
  Round round(10);
  ASSERT_TRUE(round.keys());
  const auto send = [&](const KeyList& list) {
    return error_text([&] { round.client(10).shares_for(write_key_list(list)); });
  };
  KeyList mixed = read_key_list(round.server().message_for(10));
  KeyList replayed = read_key_list(earlier.server().message_for(10));
  EXPECT_THAT(send(replayed), HasSubstr("the signature does not fit"));
  const RoundKeys own = mixed.keys.at(12);
  mixed.keys[12] = replayed.keys.at(12);
  EXPECT_THAT(send(mixed), HasSubstr("client 12: the signature does not fit: refused"));
  mixed.keys[12] = own;
  EXPECT_EQ(send(mixed), "");
  // A second list, with one member less.
  mixed.keys.erase(19);
  mixed.members.pop_back();
  EXPECT_THAT(send(mixed), HasSubstr("a second, different list of keys for the same sum: refused"));
  // Shares that it has not seen the keys of.
  EXPECT_THAT(error_text([&] {
                round.client(10).take_shares(write_sealed({{55, Bytes(80)}}));
              }),
              HasSubstr("some of client 55, which is no neighbour"));
}

// The owner of a channel has sealed for one session and one set of its keys: with others nothing opens, and
// nobody masks.
TEST(HostileServerTest, ReplaysOrChangesTheKeysOfMasks) {
  Round earlier(10);
  ASSERT_TRUE(earlier.keys() && earlier.shares());
  const SealedShares earlier_shares = read_sealed(earlier.server().message_for(10));
  const auto text = [&](uint32_t attempt, const auto& change) {
    Round round = earlier.next(attempt);
    EXPECT_TRUE(round.keys());
    KeyList list = read_key_list(round.server().message_for(10));
    EXPECT_TRUE(round.shares());
    SealedShares shares = read_sealed(round.server().message_for(10));
    SecureClient client({round.client(10).session().session, round.client(10).session().secret},
                        round.channel(10, round.client(10).session().channel), 3);
    change(&list, &shares);
    return error_text([&] {
      client.shares_for(write_key_list(list));
      client.take_shares(write_sealed(shares));
    });
  };
  EXPECT_EQ(text(1, [](KeyList*, SealedShares*) {}), "");
  const PublicKey servers = KeyPair(random_secret()).public_key();
  EXPECT_THAT(text(2, [&](KeyList* list, SealedShares*) { list->keys[15].secret = servers; }),
              HasSubstr("those of client 15 cannot be opened: refused"));
  // Keys and shares of an earlier attempt, together.
  EXPECT_THAT(text(4,
                   [&](KeyList* list, SealedShares* shares) {
                     list->keys[15] = read_keys(earlier.client(15).keys());
                     (*shares)[15] = earlier_shares.at(15);
                   }),
              HasSubstr("those of client 15 cannot be opened: refused"));
  // An earlier channel of that client, which it signed as well.
  EXPECT_THAT(text(5,
                   [&](KeyList* list, SealedShares*) {
                     const RoundKeys keys = earlier.channel(15, random_secret())->keys();
                     list->keys[15].channel = keys.channel;
                     list->keys[15].signature = keys.signature;
                   }),
              HasSubstr("those of client 15 cannot be opened: refused"));
}

// A client that lost power may have forgotten the list that it sent shares for. Of other members it gets none
// of the same secrets: of each the one half could be opened by these, and the other by those.
TEST(HostileServerTest, SendsAnotherListToAClientThatForgot) {
  Round round(10);
  ASSERT_TRUE(round.keys());
  const ClientSession begun = round.client(10).session();
  const Bytes whole = round.server().message_for(10);
  KeyList less = read_key_list(whole);
  less.keys.erase(19);
  less.members.pop_back();
  const auto shares_for = [&](const Bytes& list) {
    SecureClient client(begun, round.channel(10, begun.channel), 3);
    return client.shares_for(list);
  };
  EXPECT_EQ(shares_for(whole), shares_for(whole));
  const SentShares first = read_sent(shares_for(whole));
  const SentShares second = read_sent(shares_for(write_key_list(less)));
  EXPECT_NE(first.self_mask, second.self_mask);
  EXPECT_NE(first.wrap_key, second.wrap_key);
  EXPECT_NE(first.by_receiver.at(11).check, second.by_receiver.at(11).check);
  EXPECT_NE(first.by_receiver.at(11).sealed, second.by_receiver.at(11).sealed);
}

// Keys are sent before their sum is known, and a client that lost power may use the same again: what they
// publish is the same, and nothing else is.
TEST(HostileServerTest, UsesTheSameKeysInTwoSums) {
  Round round(10);
  const Secret secret = random_secret();
  const auto channel = round.channel(10, random_secret());
  const auto sent = [&](uint32_t attempt) {
    const Digest session = session_of("f", 1, attempt, "00");
    SecureClient client({session, secret}, channel, 3);
    EXPECT_EQ(client.keys(), keys_of(secret, *channel));
    KeyList list = read_key_list(round.server().message_for(10));
    list.keys[10] = read_keys(client.keys());
    return std::pair(read_sent(client.shares_for(write_key_list(list))), client.noise_seed());
  };
  ASSERT_TRUE(round.keys());
  const auto [first, noise] = sent(0);
  const auto [second, other_noise] = sent(1);
  EXPECT_NE(first.self_mask, second.self_mask);
  EXPECT_NE(first.wrap_key, second.wrap_key);
  EXPECT_NE(noise, other_noise);
  for (const auto& [receiver, share] : first.by_receiver) {
    EXPECT_NE(share.check, second.by_receiver.at(receiver).check);
    EXPECT_NE(share.sealed, second.by_receiver.at(receiver).sealed);
    EXPECT_NE(share.wrapped, second.by_receiver.at(receiver).wrapped);
  }
}

// Clients that were told of different members cannot read each other's shares.
TEST(HostileServerTest, TellsClientsDifferentMembers) {
  Round round(10);
  ASSERT_TRUE(round.keys());
  KeyList less = read_key_list(round.server().message_for(11));
  less.keys.erase(19);
  less.members.pop_back();
  const SentShares shares = read_sent(round.client(11).shares_for(write_key_list(less)));
  round.client(10).shares_for(round.server().message_for(10));
  EXPECT_THAT(error_text([&] {
                round.client(10).take_shares(write_sealed({{11, shares.by_receiver.at(10).sealed}}));
              }),
              HasSubstr("those of client 11 cannot be opened: refused"));
}

TEST(HostileServerTest, PutsItsOwnKeysIn) {
  Round round(10);
  ASSERT_TRUE(round.keys());
  const KeyList list = read_key_list(round.server().message_for(10));
  const auto text = [&](const auto& change) {
    KeyList changed = list;
    change(&changed);
    return error_text([&] { round.client(10).shares_for(write_key_list(changed)); });
  };
  const PublicKey servers = KeyPair(random_secret()).public_key();
  EXPECT_THAT(text([&](KeyList* l) { l->keys[15].channel = servers; }),
              HasSubstr("client 15: the signature"));
  // One client of its own under two numbers.
  EXPECT_THAT(text([&](KeyList* l) {
                l->keys[15].certificate = l->keys[14].certificate;
                l->keys[15].signature = round.identity(4).sign(signed_text("f", l->keys[15]));
              }),
              HasSubstr("found 'client-14' twice"));
  EXPECT_THAT(text([&](KeyList* l) { l->keys.erase(15); }),
              HasSubstr("found keys of 9 clients, expected 10"));
  EXPECT_THAT(text([&](KeyList* l) {
                l->members.erase(l->members.begin());
                l->keys.erase(10);
              }),
              HasSubstr("found this client 10 not among its members"));
  EXPECT_THAT(text([&](KeyList* l) {
                l->members = {10, 11};
                l->keys = {{10, l->keys[10]}, {11, l->keys[11]}};
              }),
              HasSubstr("found 2 clients, expected at least 3"));
  EXPECT_EQ(text([](KeyList*) {}), "");
}

TEST(HostileServerTest, ChangesOrWithholdsShares) {
  Round round(10);
  ASSERT_TRUE(round.keys() && round.shares());
  const SealedShares shares = read_sealed(round.server().message_for(10));
  const auto text = [&](const auto& change) {
    SealedShares changed = shares;
    change(&changed);
    return error_text([&] { round.client(10).take_shares(write_sealed(changed)); });
  };
  EXPECT_THAT(text([](SealedShares* s) { (*s)[12][0] ^= 1; }),
              HasSubstr("those of client 12 cannot be opened"));
  EXPECT_THAT(text([](SealedShares* s) { std::swap((*s)[12], (*s)[13]); }), HasSubstr("cannot be opened"));
  EXPECT_THAT(text([](SealedShares* s) {
                for (uint32_t number = 12; number < 16; ++number) s->erase(number);
              }),
              HasSubstr("found those of 6 clients, expected at least 7"));
  EXPECT_EQ(text([](SealedShares*) {}), "");
  EXPECT_THAT(text([](SealedShares* s) { s->erase(12); }), HasSubstr("a second, different set of shares"));
}

// A client that lies is found out where it can be.
// A wrong share is found out by the digest of the secret, and another takes its place.
TEST(HostileClientTest, AWrongShareOpensAndIsNamed) {
  Round round(10);
  ASSERT_TRUE(round.keys() && round.shares());
  round.mask();
  ASSERT_TRUE(round.updates({17}));
  OpenedShares wrong = read_opened(round.client(10).open(round.server().message_for(10)));
  for (auto& [owner, share] : wrong) share[5] ^= 1;
  EXPECT_TRUE(round.server().add_opened(10, write_opened(wrong)));
  EXPECT_FALSE(round.server().add_opened(10, write_opened(wrong)));  // once
  wrong.erase(13);
  EXPECT_THAT(error_text([&] { round.server().add_opened(11, write_opened(wrong)); }),
              HasSubstr("found those of 9 clients, expected one of each of 10"));
  round.open({10});
  std::vector<SecureServer::Fault> faults;
  round.server().secrets(&faults);
  ASSERT_EQ(faults.size(), 1u);  // from then on shares of the others are taken
  EXPECT_EQ(faults[0].clients, (std::vector<uint32_t>{10, 10}));
  EXPECT_EQ(round.sum(), round.expected());
  EXPECT_THAT(error_text([&] { round.server().add_keys(11, round.client(12).keys()); }),
              HasSubstr("found those of client 12, expected 11"));
}

// Of 40 clients 27 open a secret: with all answers there, a few wrong ones are found out.
TEST(HostileClientTest, AFewWrongSharesOpenAndAreNamed) {
  for (const uint32_t liars : {1u, 2u, 3u}) {
    Round round(40);
    ASSERT_TRUE(round.keys() && round.shares());
    round.mask();
    ASSERT_TRUE(round.updates());
    std::vector<uint32_t> lost;
    for (uint32_t liar = 10; liar < 10 + liars; ++liar) {
      OpenedShares wrong = read_opened(round.client(liar).open(round.server().message_for(liar)));
      wrong[13] = random_secret();
      EXPECT_TRUE(round.server().add_opened(liar, write_opened(wrong)));
      lost.push_back(liar);
    }
    round.open(lost);
    std::vector<SecureServer::Fault> faults;
    round.server().secrets(&faults);
    std::vector<uint32_t> named;
    for (const SecureServer::Fault& fault : faults) {
      EXPECT_EQ(fault.clients.at(1), 13u);
      named.push_back(fault.clients.at(0));
    }
    std::sort(named.begin(), named.end());
    EXPECT_EQ(named, lost);
    EXPECT_EQ(round.sum(), round.expected());
  }
}

// With no more answers than a secret takes there is nothing to put in its place.
TEST(HostileClientTest, WrongSharesOpenNothing) {
  Round round(10);
  ASSERT_TRUE(round.keys() && round.shares());
  round.mask();
  ASSERT_TRUE(round.updates());
  OpenedShares wrong = read_opened(round.client(10).open(round.server().message_for(10)));
  wrong[13][5] ^= 1;
  EXPECT_TRUE(round.server().add_opened(10, write_opened(wrong)));
  round.open({10, 11, 12, 14});
  ASSERT_TRUE(round.server().can_open());
  EXPECT_THAT(error_text([&] { round.sum(); }), HasSubstr("the shares of client 13's secret do not fit"));
  std::vector<SecureServer::Fault> faults;
  EXPECT_THAT(error_text([&] { round.server().secrets(&faults); }), HasSubstr("do not fit"));
  EXPECT_EQ(faults.at(0).clients, std::vector<uint32_t>{13});
  round.open();  // the others answer as well
  EXPECT_EQ(round.sum(), round.expected());
}

// The key of a pair that a lost client left at the server is not the one that the survivor masked with.
TEST(HostileClientTest, AWrongMaskOfAPairOpensNothing) {
  for (const bool wrapped : {true, false}) {
    Round round(10);
    ASSERT_TRUE(round.keys());
    for (uint32_t number = 10; number < 20; ++number) {
      SentShares sent = read_sent(round.client(number).shares_for(round.server().message_for(number)));
      SentShare& to_12 = sent.by_receiver[12];
      if (number == 14) (wrapped ? to_12.wrapped[3] : to_12.check[3]) ^= 1;
      if (number == 12) sent.by_receiver.erase(12);
      EXPECT_TRUE(round.server().add_shares(number, write_sent(sent)));
    }
    ASSERT_TRUE(round.server().end_shares());
    round.mask();
    ASSERT_TRUE(round.updates({wrapped ? 14u : 12u}));
    round.open();
    ASSERT_TRUE(round.server().can_open());
    EXPECT_THAT(error_text([&] { round.sum(); }),
                HasSubstr("clients 12 and 14 tell different masks of their pair"));
    // Where both have told the same check it is the lost client that has hidden another key.
    std::vector<SecureServer::Fault> faults;
    error_text([&] { round.server().masks(kFields, round.server().secrets(), &faults); });
    EXPECT_EQ(faults.at(0).clients, wrapped ? std::vector<uint32_t>{14} : (std::vector<uint32_t>{12, 14}));
  }
}

// What an opened wrap key gives away is of one sum: the same two channels have another pair in another one,
// and in the same one where either has drawn another secret.
TEST(PairTest, IsOfOneSumAndOfWhatBothHavePublished) {
  const Secret agreed = random_secret();
  const Secret wrap_key = random_secret();
  const RoundKeys one{3, random_secret(), random_secret(), {}, {}};
  const RoundKeys other{7, random_secret(), random_secret(), {}, {}};
  const Digest sum = random_secret();
  const Pair pair = pair_of(agreed, sum, one, other);
  EXPECT_EQ(pair_of(agreed, sum, other, one).key, pair.key);
  EXPECT_EQ(pair_of(agreed, sum, other, one).to_higher, pair.to_higher);
  EXPECT_NE(pair.to_higher, pair.to_lower);
  EXPECT_NE(pair.key, pair.to_lower);
  EXPECT_NE(mask_of(pair.key).seed, pair.key);
  std::set<Secret> keys = {pair.key};
  EXPECT_TRUE(keys.insert(pair_of(agreed, random_secret(), one, other).key).second);
  EXPECT_TRUE(keys.insert(pair_of(random_secret(), sum, one, other).key).second);
  for (const bool first : {true, false}) {
    for (const bool channel : {true, false}) {
      RoundKeys changed = first ? one : other;
      (channel ? changed.channel : changed.secret)[0] ^= 1;
      EXPECT_TRUE(keys.insert(pair_of(agreed, sum, changed, first ? other : one).key).second);
    }
  }
  const Secret hidden = wrap(wrap_key, pair.key, other);
  EXPECT_NE(hidden, pair.key);
  EXPECT_EQ(wrap(wrap_key, hidden, other), pair.key);
  // No two keys are hidden by the same bytes.
  RoundKeys again = other;
  again.secret[0] ^= 1;
  EXPECT_NE(wrap(wrap_key, hidden, again), pair.key);
  EXPECT_NE(wrap(wrap_key, hidden, one), pair.key);
}

// Computed by Python's hmac module, from docs/reference/protocol.md.
TEST(PairTest, KnownAnswers) {
  const auto all = [](uint8_t value) {
    Secret secret;
    secret.fill(value);
    return secret;
  };
  Secret agreed;
  std::iota(agreed.begin(), agreed.end(), uint8_t{0});
  const RoundKeys lower{3, all(4), all(5), {}, {}};
  const RoundKeys higher{258, all(6), all(7), {}, {}};
  const Pair pair = pair_of(agreed, all(1), higher, lower);
  EXPECT_EQ(text_of(pair.to_higher), "509b51653ca43692a7bad74c8bec8621b40e82bc783613ab1cc3fcd45bcb5b2c");
  EXPECT_EQ(text_of(pair.to_lower), "11a8a15a5adf503cfcedf1813ea4470d1f9816f9da5b2b3d24030d952179052d");
  EXPECT_EQ(text_of(pair.key), "acd3b8b59bc513d0218a13d7dfbc6777250c7765018cf394d564396f3b7f1098");
  const PairMask mask = mask_of(pair.key);
  EXPECT_EQ(text_of(mask.seed), "226767b8edffdb0e575fc41b43a993866c64d839c70c50609ab2faf6fc90043a");
  EXPECT_THAT(mask.check,
              ::testing::ElementsAre(28, 246, 239, 94, 74, 188, 19, 111, 117, 123, 6, 144, 67, 29, 110, 32));
  EXPECT_EQ(text_of(wrap(all(8), pair.key, higher)),
            "4dfca2db1bb10cc20e831e68e8aea34e47158521dc7fc07d8bec3268cf400cda");
}

TEST(NeighboursTest, LargeRoundsAreRingsOfTheSession) {
  std::vector<uint32_t> members(200);
  std::iota(members.begin(), members.end(), 0u);
  const Neighbours some(session_of("f", 1, 0, ""), members);
  const Neighbours others(session_of("f", 2, 0, ""), members);
  size_t same = 0;
  for (const uint32_t member : members) {
    const std::vector<uint32_t> holders = some.holders(member);
    EXPECT_EQ(holders.size(), 57u);
    EXPECT_TRUE(std::binary_search(holders.begin(), holders.end(), member));
    for (const uint32_t holder : holders) {
      const std::vector<uint32_t> back = some.holders(holder);
      EXPECT_TRUE(std::binary_search(back.begin(), back.end(), member));
    }
    same += holders == others.holders(member) ? 1 : 0;
  }
  EXPECT_EQ(same, 0u);
  EXPECT_EQ(threshold_of(10), 7u);
  EXPECT_EQ(threshold_of(65), 44u);
  EXPECT_EQ(threshold_of(3), 3u);
}

// The base-2 logarithm of the probability that at least `least` of `drawn` are among the marked ones of
// `all`.
double log2_tail(size_t all, size_t marked, size_t drawn, size_t least) {
  const auto choose = [](size_t n, size_t k) {
    return std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(static_cast<double>(n - k) + 1);
  };
  double sum = 0;
  for (size_t hit = least; hit <= std::min(marked, drawn); ++hit)
    sum += std::exp(choose(marked, hit) + choose(all - marked, drawn - hit) - choose(all, drawn));
  return std::log2(sum);
}

// A tenth of the members are hostile: no client has so many of them among its neighbours that both of its
// secrets can be opened, but in one round of 2^40. Fewer neighbours would not do in the last round of a row.
TEST(NeighboursTest, ATenthOfTheMembersIsTooFew) {
  EXPECT_EQ(neighbours_in(3), 2u);
  EXPECT_EQ(neighbours_in(64), 63u);
  EXPECT_EQ(neighbours_in(65), 32u);
  const auto log2_failure = [](size_t members, size_t neighbours) {
    const size_t needed = 2 * threshold_of(neighbours + 1) - (neighbours + 1);
    return std::log2(static_cast<double>(members)) + log2_tail(members - 1, members / 10, neighbours, needed);
  };
  for (size_t members = 65; members <= 1 << 20; members += 1 + members / 200) {
    EXPECT_EQ(neighbours_in(members) % 2, 0u);
    EXPECT_LT(neighbours_in(members), kMaxShares);
    EXPECT_LT(log2_failure(members, neighbours_in(members)), -40) << members;
  }
  for (const size_t members : {300, 500, 1000, 2000, 10000, 1 << 20})
    EXPECT_GT(log2_failure(members, neighbours_in(members) - 2), -40) << members;
  // By hand: of 200 members 20 are hostile, of 57 holders 21 must be.
  EXPECT_EQ(2 * threshold_of(57) - 57, 21u);
  EXPECT_EQ(log2_failure(200, 56), -INFINITY);
  EXPECT_NEAR(log2_tail(4, 2, 2, 2), -std::log2(6.0), 1e-9);
}

// Whatever bytes come, a reader gives an error or a value, and nothing else.
TEST(MessagesTest, CutOrChangedAnywhere) {
  Round round(4);
  ASSERT_TRUE(round.keys() && round.shares());
  const Bytes keys = round.client(10).keys();
  for (size_t size = 0; size < keys.size(); ++size)
    EXPECT_NE(error_text([&] { read_keys(std::span(keys).first(size)); }), "") << size;
  Bytes more = keys;
  more.push_back(0);
  EXPECT_THAT(error_text([&] { read_keys(more); }), HasSubstr("1 bytes past the end"));
  EXPECT_THAT(error_text([&] { read_numbers(Bytes{255, 255, 255, 255}); }), HasSubstr("entries"));
  EXPECT_THAT(error_text([&] { read_numbers(Bytes{1, 0, 0, 0, 0, 0, 0, 1}); }), HasSubstr("expected less"));
}

}  // namespace
}  // namespace bitfed
