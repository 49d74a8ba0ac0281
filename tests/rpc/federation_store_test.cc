#include "bitfed/rpc/server/federation_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bitfed/base/error.h"
#include "bitfed/base/hash/digest.h"
#include "bitfed/rpc/device/client_store.h"
#include "tests/base/error_text.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ClientResult result(uint32_t client, const std::string& text) {
  ClientResult made;
  made.client = client;
  made.upload = Bytes(text.begin(), text.end());
  made.samples = 7;
  made.trained_samples = 21;
  made.train_seconds = 0.5;
  return made;
}

class FederationStoreTest : public testing::Test {
 protected:
  FederationStoreTest() { open(); }
  // As after a crash.
  void open() {
    store_.reset();
    store_ = std::make_unique<FederationStore>(folder_ / "federation.sqlite");
  }
  TemporaryFolder folder_;
  std::unique_ptr<FederationStore> store_;
};

TEST_F(FederationStoreTest, RemembersAllOfIt) {
  const std::string id = store_->federation();
  EXPECT_EQ(id.size(), 32u);
  EXPECT_EQ(store_->finished_round(), -1);
  EXPECT_FALSE(store_->chosen(1));
  store_->begin_round(1, {2, 5});
  store_->put(1, result(5, "five"), "depends\n");
  open();
  EXPECT_EQ(store_->federation(), id);
  EXPECT_THAT(*store_->chosen(1), ElementsAre(2, 5));
  const auto found = store_->find(1, 5, "depends\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->upload, result(5, "five").upload);
  EXPECT_EQ(found->samples, 7u);
  EXPECT_EQ(found->trained_samples, 21u);
  EXPECT_EQ(found->train_seconds, 0.5);
  EXPECT_FALSE(store_->find(1, 2, "depends\n"));
  EXPECT_EQ(store_->accepted(1, 5), sha256_hex(std::string_view("five")));
  EXPECT_THAT(error_text([&] { store_->find(1, 5, "other\n"); }), HasSubstr("'depends' there, 'other' here"));
}

TEST_F(FederationStoreTest, DigestsOutliveTheBytes) {
  store_->begin_round(1, {0});
  store_->put(1, result(0, "one"), "");
  State state;
  state.metadata["checkpoint"] = "text";
  store_->save(1, state);
  store_->begin_round(2, {0});
  store_->put(2, result(0, "two"), "");
  store_->remove_round(1);
  store_->save(2, state);
  open();
  EXPECT_EQ(store_->finished_round(), 2);
  EXPECT_EQ(store_->load()->text("checkpoint"), "text");
  EXPECT_FALSE(store_->find(1, 0, ""));
  EXPECT_TRUE(store_->find(2, 0, ""));
  EXPECT_EQ(store_->accepted(1, 0), sha256_hex(std::string_view("one")));
}

// Thousands of rounds: the file stays as large as a few of them need, and each client's newest digest is
// known.
TEST_F(FederationStoreTest, OldRoundsArePruned) {
  store_.reset();
  store_ = std::make_unique<FederationStore>(folder_ / "federation.sqlite", 10);
  State state;
  state.metadata["checkpoint"] = "text";
  const auto rounds = [&](uint32_t first, uint32_t last) {
    for (uint32_t round = first; round <= last; ++round) {
      store_->begin_round(round, {0, 1, 2, 3});
      store_->together([&] {
        for (uint32_t client = 0; client < (round == 1 ? 5u : 4u); ++client)
          store_->put(round, result(client, std::to_string(round) + std::string(3000, 'x')), "depends");
      });
      if (round > 1) store_->remove_round(round - 1);
      store_->save(round, state);
    }
    return std::filesystem::file_size(folder_ / "federation.sqlite");
  };
  rounds(1, 40);
  open();  // also moves the write-ahead log into the file
  store_.reset();
  store_ = std::make_unique<FederationStore>(folder_ / "federation.sqlite", 10);
  const auto before = std::filesystem::file_size(folder_ / "federation.sqlite");
  rounds(41, 120);
  open();
  EXPECT_LE(std::filesystem::file_size(folder_ / "federation.sqlite"), before + 16384);
  EXPECT_LT(before, 120000u);
  EXPECT_FALSE(store_->chosen(50));
  EXPECT_FALSE(store_->accepted(50, 0));
  EXPECT_TRUE(store_->chosen(115));
  EXPECT_TRUE(store_->accepted(115, 0));
  EXPECT_TRUE(store_->accepted(1, 4));  // the only one of its client
}

TEST_F(FederationStoreTest, ADamagedCheckpointShows) {
  State state;
  state.metadata["checkpoint"] = "text";
  store_->save(1, state);
  store_.reset();
  {
    Database database(folder_ / "federation.sqlite", "a federation's server", "");
    database.execute("UPDATE checkpoint SET state = CAST(replace(state, 'text', 'tixt') AS BLOB)");
  }
  open();
  EXPECT_THAT(error_text([&] { store_->load(); }), HasSubstr("the checkpoint does not match its digest"));
}

TEST_F(FederationStoreTest, ACohortThatFailedIsForgotten) {
  store_->begin_round(3, {1, 2});
  EXPECT_EQ(store_->attempts(3), 0u);
  EXPECT_EQ(store_->abandon_round(3), 1u);
  EXPECT_FALSE(store_->chosen(3));
  store_->begin_round(3, {0});
  open();
  EXPECT_EQ(store_->abandon_round(3), 2u);
  EXPECT_EQ(store_->attempts(3), 2u);
}

TEST_F(FederationStoreTest, TogetherOrNotAtAll) {
  store_->begin_round(1, {0, 1});
  EXPECT_THROW(store_->together([&] {
    store_->put(1, result(0, "one"), "");
    throw std::runtime_error("crash");
  }),
               std::runtime_error);
  EXPECT_FALSE(store_->accepted(1, 0));
  store_->together([&] {
    store_->put(1, result(0, "one"), "");
    store_->put(1, result(1, "two"), "");
  });
  EXPECT_TRUE(store_->accepted(1, 1));
  // A second update of the same client in the same round cannot be put.
  EXPECT_EQ(error_text([&] { store_->put(1, result(0, "other"), ""); }, Error::Kind::kFailure).empty(),
            false);
  EXPECT_EQ(store_->accepted(1, 0), sha256_hex(std::string_view("one")));
}

TEST_F(FederationStoreTest, ANameHasANumberForEver) {
  EXPECT_EQ(store_->register_client("ann", 2, 3), 2u);
  EXPECT_EQ(store_->register_client("bob", std::nullopt, 3), 0u);
  open();
  EXPECT_EQ(store_->register_client("ann", std::nullopt, 3), 2u);
  EXPECT_THAT(error_text([&] { store_->register_client("ann", 1, 3); }),
              HasSubstr("'ann' is number 2, not 1"));
  EXPECT_THAT(error_text([&] { store_->register_client("cem", 2, 3); }),
              HasSubstr("part 2 is held by client 'ann'"));
  EXPECT_THAT(error_text([&] { store_->register_client("cem", 3, 3); }), HasSubstr("expected 0 to 2"));
  EXPECT_EQ(store_->register_client("cem", std::nullopt, 3), 1u);
  EXPECT_THAT(error_text([&] { store_->register_client("dia", std::nullopt, 3); }),
              HasSubstr("all 3 places"));
}

TEST_F(FederationStoreTest, OneProcessAtATime) {
  EXPECT_THAT(error_text([&] { FederationStore(folder_ / "federation.sqlite"); }),
              HasSubstr("another bitfed is at work"));
  store_.reset();
  EXPECT_THAT(error_text([&] { ClientStore(folder_ / "federation.sqlite"); }),
              HasSubstr("expected the state of a federation's client"));
  write_file_atomically(folder_ / "garbage",
                        std::string_view("this is no database, but long enough to look"));
  EXPECT_THAT(error_text([&] { FederationStore(folder_ / "garbage"); }, Error::Kind::kFailure),
              HasSubstr("garbage: "));
}

TEST_F(FederationStoreTest, IsItsOwnersAlone) {
  store_->begin_round(1, {0});
  const auto others = std::filesystem::perms::group_all | std::filesystem::perms::others_all;
  for (const auto& file : std::filesystem::directory_iterator(folder_ / "."))
    EXPECT_EQ(file.status().permissions() & others, std::filesystem::perms::none) << file.path();
  // A file of an earlier build is made private as it is opened.
  std::filesystem::permissions(folder_ / "federation.sqlite", std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  open();
  EXPECT_EQ(std::filesystem::status(folder_ / "federation.sqlite").permissions() & others,
            std::filesystem::perms::none);
}

TEST(ClientStoreTest, KeepsWithTheVerdict) {
  TemporaryFolder folder;
  auto store = std::make_unique<ClientStore>(folder / "client.sqlite");
  const auto reopen = [&] {
    store.reset();
    store = std::make_unique<ClientStore>(folder / "client.sqlite");
  };
  EXPECT_FALSE(store->membership());
  EXPECT_TRUE(store->kept().empty());
  store->join({"id", 4});
  ClientStore::Update update;
  update.round = 3;
  update.broadcast_sha256 = "b";
  update.result = result(4, "upload");
  update.sha256 = sha256_hex(update.result.upload);
  update.kept = {1, 2};
  store->finish(update);
  reopen();
  EXPECT_EQ(store->membership()->number, 4u);
  ASSERT_TRUE(store->finished_update());
  EXPECT_EQ(store->finished_update()->result.upload, update.result.upload);
  EXPECT_EQ(store->finished_update()->broadcast_sha256, "b");
  EXPECT_TRUE(store->kept().empty());
  EXPECT_FALSE(store->last_accepted());
  store->accepted();
  reopen();
  EXPECT_EQ(store->last_accepted(), 3u);
  EXPECT_FALSE(store->finished_update());
  EXPECT_THAT(store->kept(), ElementsAre(1, 2));
  // Dropped: as if the round had not been. Nothing kept: what was there stays.
  update.kept = {9};
  store->finish(update);
  store->dropped();
  EXPECT_THAT(store->kept(), ElementsAre(1, 2));
  update.kept = {};
  store->finish(update);
  store->accepted();
  EXPECT_THAT(store->kept(), ElementsAre(1, 2));
}

}  // namespace
}  // namespace bitfed
