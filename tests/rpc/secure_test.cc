// Secure aggregation over a network: what a device must not forget, and whom it believes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bitfed/base/hash/digest.h"
#include "bitfed/rpc/device/client_store.h"
#include "bitfed/rpc/device/device_channel.h"
#include "bitfed/rpc/security/certificate_identity.h"
#include "bitfed/rpc/security/certificates.h"
#include "tests/base/error_text.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

TEST(ClientStoreTest, RemembersASumAndThatItWasOpened) {
  const TemporaryFolder folder;
  ClientStore::Sum sum{7, 2, {}};
  sum.session.session[3] = 9;
  sum.session.secret[0] = 8;
  sum.session.channel[5] = 7;
  sum.session.key_list = {1, 2, 3};
  {
    ClientStore store(folder / "client.sqlite");
    EXPECT_FALSE(store.sum());
    store.put_sum(sum);
    EXPECT_FALSE(store.last_opened());
    sum.session.peer_shares = {4};
    sum.session.survivors = {5, 6};
    sum.session.update = {7};
    store.open_sum(sum, {}, false);
  }
  ClientStore store(folder / "client.sqlite");
  const auto read = store.sum();
  ASSERT_TRUE(read);
  EXPECT_EQ(read->round, 7u);
  EXPECT_EQ(read->attempt, 2u);
  EXPECT_EQ(read->session.session, sum.session.session);
  EXPECT_EQ(read->session.secret, sum.session.secret);
  EXPECT_EQ(read->session.channel, sum.session.channel);
  EXPECT_EQ(read->session.key_list, sum.session.key_list);
  EXPECT_EQ(read->session.peer_shares, sum.session.peer_shares);
  EXPECT_EQ(read->session.survivors, sum.session.survivors);
  EXPECT_EQ(read->session.update, sum.session.update);
  EXPECT_EQ(store.last_opened(), 7u);
  // Another sum does not make it forget.
  sum = {8, 0, {}};
  sum.session.secret[0] = 10;
  store.put_sum(sum);
  EXPECT_EQ(store.last_opened(), 7u);
  EXPECT_EQ(store.sum()->round, 8u);
  EXPECT_TRUE(store.sum()->session.survivors.empty());
}

// The update that is in a sum counts when the sum is opened, in one step with the answer.
TEST(ClientStoreTest, AnOpenedSumSettlesItsUpdate) {
  const TemporaryFolder folder;
  ClientStore::Sum sum{7, 0, {}};
  sum.session.secret[0] = 8;
  ClientStore::Update update;
  update.round = 7;
  update.result.upload = {1, 2};
  update.sha256 = sha256_hex(update.result.upload);
  update.kept = {3};
  {
    ClientStore store(folder / "client.sqlite");
    store.put_sum(sum);
    store.finish(update, &sum);
    sum.session.survivors = {5};
    store.open_sum(sum, {{9}, {10}, 11}, true);
  }
  ClientStore store(folder / "client.sqlite");
  EXPECT_FALSE(store.finished_update());
  EXPECT_EQ(store.last_accepted(), 7u);
  EXPECT_EQ(store.last_opened(), 7u);
  EXPECT_EQ(store.kept(), Bytes{3});
  ASSERT_TRUE(store.next_keys());
  EXPECT_EQ(store.next_keys()->secret, Secret{9});
}

// Keys that were sent ahead are kept until a sum begins.
TEST(ClientStoreTest, RemembersTheNextKeys) {
  const TemporaryFolder folder;
  {
    ClientStore store(folder / "client.sqlite");
    EXPECT_FALSE(store.next_keys());
    store.put_next_keys({{1}, {2}, 3});
    store.put_next_keys({{4}, {5}, 6});
  }
  ClientStore::Sum sum{1, 0, {}};
  sum.session.secret = {4};
  {
    ClientStore store(folder / "client.sqlite");
    ASSERT_TRUE(store.next_keys());
    EXPECT_EQ(store.next_keys()->secret, Secret{4});
    EXPECT_EQ(store.next_keys()->channel, Secret{5});
    EXPECT_EQ(store.next_keys()->until, 6);
    store.put_sum(sum);
    EXPECT_FALSE(store.next_keys());
    store.put_next_keys({{7}, {8}, 9});
    sum.session.key_list = {1};
    store.put_sum(sum);  // the same sum goes on
    EXPECT_TRUE(store.next_keys());
  }
  ClientStore store(folder / "client.sqlite");
  ASSERT_TRUE(store.next_keys());
  EXPECT_EQ(store.next_keys()->secret, Secret{7});
  sum.session.secret = {7};
  store.put_sum(sum);
  EXPECT_FALSE(store.next_keys());
}

// While the store is open: no key that was erased is in its file or in its log.
TEST(ClientStoreTest, ErasesKeys) {
  const TemporaryFolder folder;
  ClientStore store(folder / "state/client.sqlite");
  const auto holds = [&](const Secret& secret) {
    for (const auto& file : std::filesystem::directory_iterator(folder / "state")) {
      const Bytes bytes = read_file(file.path());
      if (std::search(bytes.begin(), bytes.end(), secret.begin(), secret.end()) != bytes.end()) return true;
    }
    return false;
  };
  const ClientStore::NextKeys first{random_secret(), random_secret(), 1};
  const ClientStore::NextKeys second{random_secret(), random_secret(), 2};
  store.put_next_keys(first);
  ClientStore::Sum sum{1, 0, {}};
  sum.session.secret = first.secret;
  sum.session.channel = first.channel;
  sum.session.key_list = Bytes(10000, 1);
  store.put_sum(sum);
  EXPECT_TRUE(holds(first.secret) && holds(first.channel));
  sum.session.secret = sum.session.channel = {};
  sum.session.key_list.clear();
  sum.session.survivors = {1};
  sum.answer = {2};
  store.open_sum(sum, second, false);
  EXPECT_FALSE(holds(first.secret) || holds(first.channel));
  EXPECT_TRUE(holds(second.secret) && holds(second.channel));
  EXPECT_EQ(store.sum()->answer, Bytes{2});
  store.forget_keys();
  EXPECT_FALSE(holds(second.secret) || holds(second.channel));
  EXPECT_FALSE(store.next_keys());
  EXPECT_EQ(store.sum()->session.survivors, Bytes{1});
  EXPECT_EQ(store.sum()->answer, Bytes{2});
}

class IdentityTest : public testing::Test {
 protected:
  IdentityTest() {
    for (const char* authority : {"ours", "theirs"}) {
      make_authority(folder_ / authority, authority, 10);
      issue_client(folder_ / authority, "ann", 10);
    }
    issue_client(folder_ / "ours", "bob", 10);
    issue_operator(folder_ / "ours", "olga", 10);
    issue_server(folder_ / "ours", {"localhost"}, 10);
  }

  std::unique_ptr<Identity> identity(const std::string& file, const std::string& authority = "ours") const {
    const auto path = folder_ / authority;
    return make_certificate_identity({path / "ca.pem", path / (file + ".pem"), path / (file + ".key")});
  }
  // What ann says of a text that another signed.
  std::string said(const Identity& other) const {
    return error_text([&] { ann().check(other.certificate(), kText, other.sign(kText)); });
  }
  const Identity& ann() const {
    if (ann_ == nullptr) ann_ = identity("clients/ann");
    return *ann_;
  }

  const Bytes kText = {1, 2, 3};
  TemporaryFolder folder_;
  mutable std::unique_ptr<Identity> ann_;
};

TEST_F(IdentityTest, KnowsTheClientsOfItsAuthority) {
  const auto bob = identity("clients/bob");
  EXPECT_EQ(ann().check(bob->certificate(), kText, bob->sign(kText)), "bob");
  EXPECT_EQ(ann().check(ann().certificate(), kText, ann().sign(kText)), "ann");
}

TEST_F(IdentityTest, RefusesEverybodyElse) {
  EXPECT_THAT(said(*identity("clients/ann", "theirs")),
              HasSubstr("'ann' is none of a client of this federation"));
  EXPECT_THAT(said(*identity("server")), HasSubstr("is none of a client"));
  EXPECT_THAT(said(*identity("operators/olga")), HasSubstr("an operator's"));
  const auto bob = identity("clients/bob");
  const auto text = [&](const Bytes& certificate, const Bytes& signed_text, const Bytes& signature) {
    return error_text([&] { ann().check(certificate, signed_text, signature); });
  };
  EXPECT_THAT(text(bob->certificate(), kText, ann().sign(kText)), HasSubstr("not signed by 'bob'"));
  EXPECT_THAT(text(bob->certificate(), {1, 2}, bob->sign(kText)), HasSubstr("not signed by 'bob'"));
  EXPECT_THAT(text({1, 2, 3}, kText, {}), HasSubstr("expected a certificate"));
  EXPECT_THAT(text({}, kText, {}), HasSubstr("expected a certificate"));
}

// What was good once is not checked again while the certificate lasts; anything else is.
TEST_F(IdentityTest, RemembersWhatItHasChecked) {
  using namespace std::chrono_literals;
  auto now = std::chrono::system_clock::now();
  const auto path = folder_ / "ours";
  const auto ann = make_certificate_identity(
      {path / "ca.pem", path / "clients/ann.pem", path / "clients/ann.key"}, [&] { return now; });
  const auto bob = identity("clients/bob");
  const Bytes certificate = bob->certificate();
  const Bytes signature = bob->sign(kText);
  const auto text = [&](const Bytes& signed_text, const Bytes& signature_of_it) {
    return error_text([&] { EXPECT_EQ(ann->check(certificate, signed_text, signature_of_it), "bob"); });
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(text(kText, signature), "");
  Bytes changed = signature;
  changed.back() ^= 1;
  EXPECT_THAT(text(kText, changed), HasSubstr("not signed by 'bob'"));
  EXPECT_THAT(text({1, 2}, signature), HasSubstr("not signed by 'bob'"));
  EXPECT_THAT(error_text([&] { ann->check(ann->certificate(), kText, signature); }),
              HasSubstr("not signed by 'ann'"));
  now += 9 * 24h;
  EXPECT_EQ(text(kText, signature), "");
  // Of what was checked certificate and signature may be left out, but not one of them, and of nothing else.
  const auto left_out = [&](const Bytes& signed_text) {
    return error_text([&] { EXPECT_EQ(ann->check({}, signed_text, {}), "bob"); });
  };
  EXPECT_EQ(left_out(kText), "");
  EXPECT_THAT(left_out({1, 2}), HasSubstr("expected a certificate"));
  EXPECT_THAT(error_text([&] { ann->check({}, kText, signature); }), HasSubstr("expected a certificate"));
  EXPECT_THAT(error_text([&] { ann->check(certificate, kText, {}); }), HasSubstr("not signed by 'bob'"));
  now += 2 * 24h;
  EXPECT_THAT(text(kText, signature), HasSubstr("certificate has expired"));
  EXPECT_THAT(left_out(kText), HasSubstr("expected a certificate"));
}

// What is asked for again and again is not forgotten for others.
TEST_F(IdentityTest, ForgetsWhatItWasNotAskedForInALongTime) {
  const auto bob = identity("clients/bob");
  const Bytes rare = {1}, often = {2};
  for (const Bytes& text : {rare, often}) ann().check(bob->certificate(), text, bob->sign(text));
  for (uint32_t i = 0; i < 2 * 4096; ++i) {
    const Bytes text = {3, static_cast<uint8_t>(i), static_cast<uint8_t>(i >> 8)};
    ann().check(bob->certificate(), text, bob->sign(text));
    if (i % 1000 != 0) continue;
    EXPECT_EQ(ann().check({}, often, {}), "bob");
  }
  EXPECT_EQ(ann().check({}, often, {}), "bob");
  EXPECT_THAT(error_text([&] { ann().check({}, rare, {}); }), HasSubstr("expected a certificate"));
}

// One channel for the sums of a device, until its certificate may be another. A sum goes on with its own.
TEST_F(IdentityTest, AChannelServesManySums) {
  const auto path = folder_ / "ours";
  const ClientTrust trust{path / "ca.pem", path / "clients/ann.pem", path / "clients/ann.key"};
  const ClientSession begins;
  DeviceChannel device(trust);
  const auto first = device.of(begins, "federation", 3);
  EXPECT_EQ(device.of(begins, "federation", 3), first);
  EXPECT_EQ(first->number(), 3u);
  EXPECT_EQ(first->check(first->keys()), "ann");
  device.forget();
  const auto second = device.of(begins, "federation", 3);
  EXPECT_NE(second->key(), first->key());
  ClientSession goes_on;
  goes_on.secret[0] = 1;
  goes_on.channel = first->key();
  EXPECT_EQ(device.of(goes_on, "federation", 3)->keys().channel, first->keys().channel);
  EXPECT_NE(device.of(begins, "federation", 3)->key(), first->key());
}

// A channel serves an hour, also where keys were sent ahead and their round begins late, and also after a
// restart.
TEST_F(IdentityTest, AChannelServesAnHour) {
  using namespace std::chrono_literals;
  const auto path = folder_ / "ours";
  const ClientTrust trust{path / "ca.pem", path / "clients/ann.pem", path / "clients/ann.key"};
  auto now = std::chrono::system_clock::now();
  DeviceChannel device(trust, [&] { return now; });
  const auto first = device.ahead("federation", 3);
  EXPECT_EQ(device.of({}, "federation", 3), first.channel);
  now += 44min;
  EXPECT_EQ(device.ahead("federation", 3).channel, first.channel);
  EXPECT_TRUE(device.may_be_sent(first.until));
  now += 2min;  // too little is left for a round that is still to begin
  EXPECT_FALSE(device.may_be_sent(first.until));
  EXPECT_TRUE(device.may_begin(first.until));
  EXPECT_EQ(device.of({}, "federation", 3), first.channel);
  const auto second = device.ahead("federation", 3);
  EXPECT_NE(second.channel->key(), first.channel->key());
  now += 15min;
  EXPECT_FALSE(device.may_begin(first.until));
  EXPECT_TRUE(device.may_begin(second.until));
  EXPECT_EQ(device.of({}, "federation", 3), second.channel);
  // Another process has the same clock.
  DeviceChannel restarted(trust, [&] { return now; });
  EXPECT_FALSE(restarted.may_begin(first.until));
  EXPECT_TRUE(restarted.may_begin(second.until));
  now += 1h;
  EXPECT_FALSE(restarted.may_begin(second.until));
  EXPECT_NE(device.of({}, "federation", 3), second.channel);
  now -= 24h;  // a clock that is put back makes nothing younger
  EXPECT_FALSE(restarted.may_begin(second.until));
}

}  // namespace
}  // namespace bitfed
